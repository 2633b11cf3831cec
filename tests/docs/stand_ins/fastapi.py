"""What the pages use of FastAPI."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

_Handler = TypeVar("_Handler", bound=Callable[..., object])


class HTTPException(Exception):  # noqa: N818 - its name there
    def __init__(self, status_code: int, detail: str) -> None:
        super().__init__(detail)
        self.status_code = status_code


class FastAPI:
    def __init__(self, *, lifespan: Callable[["FastAPI"], object]) -> None:
        self.state: Any = SimpleNamespace()
        self.routes: list[Any] = []
        self.lifespan = lifespan

    def _route(self, path: str) -> Callable[[_Handler], _Handler]:
        def kept(handler: _Handler) -> _Handler:
            self.routes.append(SimpleNamespace(path=path))
            return handler

        return kept

    get = post = delete = _route


def Depends(_: Callable[..., object]) -> Any:  # noqa: N802 - its name there
    return None


def Header() -> Any:  # noqa: N802 - its name there
    return None
