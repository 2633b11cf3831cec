"""Uses of other libraries that a memory answers by an error that says what to write."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from mnemic.errors import UnsupportedUseError
from mnemic.reporting.habits import MEMORY, AnswersHabits, NotPickled, missing


class _OfMemories(type):
    """Classes of memories, which answer the names of other libraries' ways to open one."""

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name != "__class__"]  # it is no help

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(cls, name: str) -> object:
            if name.startswith("_") or any(name in vars(each) for each in cls.__mro__):
                return type.__getattribute__(cls, name)  # raises what was raised before
            raise missing(cls, name, dir(cls), MEMORY)


class MemoryHabits(AnswersHabits, NotPickled, metaclass=_OfMemories):
    """A view of a memory, which is always true, and neither a sequence nor a dict."""

    _habits: ClassVar[Mapping[str, str]] = MEMORY
    _not_pickled: ClassVar[str] = (
        "{name} cannot be pickled or copied deeply, as it is open; give the other process the "
        "path, and open a memory there"
    )

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> Self:
        view = type(self).__new__(type(self))
        vars(view).update(vars(self))
        return view

    if not TYPE_CHECKING:  # which would let these through

        def __len__(self) -> int:
            raise UnsupportedUseError(
                f"{type(self).__name__} has no length; memory.count(user_id=…) counts a user's "
                "memories"
            )

        def __getitem__(self, key: object) -> object:
            raise UnsupportedUseError(
                f"{type(self).__name__} has no items; memory.get(id) returns one memory, and "
                "memory.list(user_id=…) a page of them"
            )
