"""How a memory is opened and closed: at once, or by its first use."""

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.errors import MnemicError, StoreClosedError, StoreError
from mnemic.model import Scope
from mnemic.records.secrets import without_passwords
from mnemic.reporting.near_names import explain_failure, is_coroutine, names_arguments
from mnemic.repository import Options  # noqa: TC001 - resolved when a call fails
from mnemic.threads.background import running_loop, start_thread, thread_of
from mnemic.threads.locks import ReentrantLock
from mnemic.threads.sync_bridge import (
    EnteredAwaited,
    EnteredPlainly,
    Other,
    WrongForm,
    run_blocking,
    run_sync,
    runs_sync,
    sync_method,
)
from mnemic.verbs.base import ScopedBase, Services

Kind = TypeVar("Kind", bound=type)


class Opening:
    """Opens a memory once, for all that wait for it; after a failure the next one tries again.

    Args:
        path: The memory's path.
        open_memory: Opens it; runs in any thread.

    Attributes:
        path: The path, without a password.
    """

    def __init__(self, path: str, open_memory: Callable[[], Services]) -> None:
        self.path = without_passwords(path)
        self._open_memory = open_memory
        self._lock = ReentrantLock()  # held while it is opened
        self._is_opening = False
        self._services: Services | None = None
        self._waiting: set[object] = set()
        self._is_taken = False
        self._is_closed = False

    def now(self) -> Services:
        """Open it in this thread, unless it is open."""
        with self._lock:
            services = self._opened()
            self._is_taken = True
            return services

    async def awaited(self) -> Services:
        """Open it in another thread; what is opened for cancelled tasks alone is closed again."""
        task = object()
        self._waiting.add(task)
        try:
            services: Services = await run_blocking(lambda: self._opened_for(task))
            self._is_taken = True
        except Exception:
            self._waiting.discard(task)
            raise
        except BaseException:
            self._waiting.discard(task)
            letting_go = thread_of("opening", self._let_go)
            letting_go.daemon = False
            start_thread(letting_go)
            raise
        self._waiting.discard(task)
        return services

    def close(self) -> None:
        """Close it permanently; an opening that has begun is waited for."""
        with self._lock:
            self._is_closed = True
            self._end()

    def _opened(self) -> Services:
        if self._is_closed:
            raise StoreClosedError(f"{self.path}: the memory was closed")
        if self._is_opening:  # by this thread: no other one has the lock
            raise StoreError(
                f"{self.path}: the memory is not open yet; a function that opening calls, such as "
                "progress or an embedder, must not use it"
            )
        if self._services is None:
            self._is_opening = True
            try:
                self._services = self._open_memory()
            finally:
                self._is_opening = False
        return self._services

    def _opened_for(self, task: object) -> Any:
        """Return the services; nothing for a task that was cancelled before."""
        with self._lock:
            return self._opened() if task in self._waiting else None

    def _let_go(self) -> None:
        with self._lock:
            if not (self._waiting or self._is_taken):
                self._end()

    def _end(self) -> None:
        services, self._services = self._services, None
        if services is not None:
            run_sync(services.repository.close())


@names_arguments
class MemoryHandle(ScopedBase):
    """The view in which only the agent is named; for the arguments see `Memory`."""

    _opening: Opening | None = None
    _opens_later = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        agent_id: str = "default",
        *,
        expander: "mnemic.annotations.AnyExpander | None" = None,
        **options: "Unpack[Options]",
    ) -> None:
        if expander is not None:
            from mnemic.retrieval import expander_of  # noqa: PLC0415 - loaded where it is used

            expander = expander_of(expander)  # refused before a file is opened
        from mnemic.repository import Repository, Settings  # noqa: PLC0415 - as above

        async def opened(settings: Settings) -> Services:
            return Services(Repository(settings), expander)

        settings = Settings.of(path, agent_id, **options)
        if self._opens_later and not runs_sync() and running_loop() is not None:
            # From the arguments: an embedder of a failed opening is closed.
            self._opening = Opening(
                os.fsdecode(path),
                lambda: run_sync(opened(Settings.of(path, agent_id, **options))),
            )
        else:
            self._take(run_sync(opened(settings)))

    @property
    def embedder(self) -> "mnemic.embed.Embedder | None":
        """The embedder; None where there is none."""
        return self._repository.embedder

    @property
    def events(self) -> "mnemic.events.Events":
        """The events of this memory; see `mnemic.events`."""
        return self._repository.events

    def _take(self, services: Services) -> None:
        shared = services.repository.shared
        super().__init__(services.repository, Scope(shared.agent_id), services)
        self._opening = None


class _SetByOpening:
    """An attribute that a memory has once it is open: looking for it opens the memory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, memory: "AsyncHandle | None", owner: type) -> object:
        if memory is None:
            raise AttributeError(self._name)
        memory._open_now()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - its own
        return vars(memory)[self._name]


class AsyncHandle(EnteredAwaited, MemoryHandle):
    """A memory that its constructor opens, or, in a running event loop, its first use.

    `async with` and the methods that are awaited open it in another thread, everything else in its
    own.
    """

    _opens_later = True

    if not TYPE_CHECKING:
        _repository = _SetByOpening("_repository")
        _scope = _SetByOpening("_scope")
        _services = _SetByOpening("_services")
        open = WrongForm("{name} has no open(); write: async with {name}(path) as memory")

    async def close(self) -> None:
        """Finish writing and release the file. Repeated calls have no effect."""
        if self._opening is None:
            await self._repository.close()
        else:
            await run_blocking(self._opening.close)

    aclose = close

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        if self._opening is None:
            return super().__repr__()
        return f"{type(self).__name__}({self._opening.path!r}, not open)"

    async def _open(self) -> None:
        if self._opening is not None:
            self._take(await self._opening.awaited())

    def _open_now(self) -> None:
        if self._opening is not None:
            self._take(self._opening.now())

    def _other_form(self, kind: type[Other]) -> Other:
        self._open_now()
        return super()._other_form(kind)


class PlainHandle(EnteredPlainly, MemoryHandle):
    """A memory that its constructor opens."""

    close = sync_method(AsyncHandle.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def opens_first(kind: Kind) -> Kind:
    """Let the coroutine methods of a class open its memory, and name their arguments in errors."""
    members = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    for name, member in members.items():
        if is_coroutine(member) and not name.startswith("_") and name not in {"close", "aclose"}:
            setattr(kind, name, _opening_first(getattr(member, "__wrapped__", member)))
    return names_arguments(kind)


def _opening_first(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def call(this: AsyncHandle, /, *values: Any, **named: Any) -> Any:
        try:
            if getattr(this, "_opening", None) is not None:
                await this._open()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - its own
            return await method(this, *values, **named)
        except (TypeError, MnemicError) as error:
            explain_failure(error, method, (this, *values), named)
            raise

    return call
