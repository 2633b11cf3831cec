"""Calls functions that embed texts: plain or awaitable, of one text or of several.

Each flow is a generator that yields the awaitables it waits for, so that it serves functions and
coroutine functions alike: `run` returns its result, or a coroutine of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, TypeVar

from mnemic.arrays import np
from mnemic.errors import EmbedderResultError
from mnemic.reporting.description import described, tensor_advice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.floating[Any]]

Result = TypeVar("Result")
Steps: TypeAlias = Generator[Awaitable[Any], Any, Result]

AWAITED_AT_ONCE = 8
"""Maximum number of calls of a coroutine function of one text that run at once."""

_VECTOR, _VECTORS = 1, 2  # array dimensions
_NUMBERS = "fiu"  # kinds of dtypes
_ARGUMENT_ERRORS = (TypeError, ValueError, AttributeError)


class Function(Protocol):
    """A function from texts to vectors."""

    @property
    def takes_many(self) -> bool:
        """Whether one call embeds several texts; True until it is known."""
        ...

    def vectors(self, texts: Sequence[str], /) -> Steps[Vectors]:
        """Return the vectors of texts, of which there is at least one."""
        ...


class TextsFunction:
    """A function from a list of texts to their vectors.

    Args:
        call: The function.
    """

    takes_many = True

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    def vectors(self, texts: Sequence[str], /) -> Steps[Vectors]:
        """Call the function once."""
        returned = yield from _called(self._call, list(texts))
        return _numbers(returned)


class OneTextFunction:
    """A function from one text to its vector.

    Args:
        call: The function.
    """

    takes_many = False

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    def vectors(self, texts: Sequence[str], /) -> Steps[Vectors]:
        """Call the function for each text; several calls of a coroutine function run at once."""
        first = self._call(texts[0])
        if is_awaitable(first):
            vectors = yield _gathered(self._call, first, texts[1:])
        else:
            vectors = [_one_vector(first)]
            for text in texts[1:]:
                vectors.append(_one_vector((yield from _called(self._call, text))))
        return _stacked(vectors)


class UnknownFunction:
    """A function of one text or of several; its first call finds out which.

    The first call passes at least two texts, so that vectors of several texts are distinguished
    from a vector of all of them, and from the vectors of characters. A function that raises for a
    list may have failed by chance, so it is one of one text if it raises twice. One that returns
    numbers for a list is one of one text only if they are a vector as long as that of a text:
    another number of rows than of texts belongs to no text.

    Args:
        call: The function.
    """

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call
        self._known: Function | None = None
        self._times_raised = 0

    @property
    def takes_many(self) -> bool:
        """Whether one call embeds several texts; True until it is known."""
        return self._known is None or self._known.takes_many

    def vectors(self, texts: Sequence[str], /) -> Steps[Vectors]:
        """Call the function, for all texts or for each.

        Raises:
            EmbedderResultError: If neither form returns vectors.
        """
        if self._known is not None:
            return (yield from self._known.vectors(texts))
        tried = list(texts) if len(texts) > 1 else [texts[0], texts[0]]
        found = yield from self._of_several(tried)
        if not isinstance(found, str) and found.ndim == _VECTORS and len(found) == len(tried):
            self._known = TextsFunction(self._call)
            return found[: len(texts)]
        said = found if isinstance(found, str) else f"returned shape {found.shape}"
        reason = f"of a list of {len(tried)} texts it {said}"
        if isinstance(found, str) or found.ndim == _VECTOR:
            vectors = yield from self._of_each(texts, found)
            if not isinstance(vectors, str):
                return vectors
            reason += f", and of one text: {vectors}"
        raise EmbedderResultError(
            f"{reason}. An embedder returns a vector for a text, or a list of vectors, one for "
            "each, for a list of texts"
        )

    def _of_each(self, texts: Sequence[str], found: Vectors | str) -> Steps[Vectors | str]:
        """Return the vectors of each text, or a description where they do not fit those found."""
        one = OneTextFunction(self._call)
        try:
            vectors = yield from one.vectors(texts)
        except EmbedderResultError as error:
            return str(error)
        if not isinstance(found, str) and found.shape != vectors.shape[1:]:
            return f"it returned shape {vectors.shape[1:]}"
        if self._times_raised != 1:
            self._known = one
        return vectors

    def _of_several(self, texts: list[str]) -> Steps[Vectors | str]:
        """Return what a function returns for texts, or a description of it if it is no numbers."""
        try:
            returned = yield from _called(self._call, list(texts))  # which it may change
        except _ARGUMENT_ERRORS as error:  # a list may not be its argument
            self._times_raised += 1
            return f"raised {type(error).__name__}"
        try:
            return _numbers(returned)
        except EmbedderResultError:
            return f"returned {described(returned)}"


def run(steps: Steps[Result]) -> Result | Awaitable[Result]:
    """Return the result of a flow, or an awaitable of it if the flow waits for one."""
    try:
        waits_for = next(steps)
    except StopIteration as end:
        result: Result = end.value
        return result
    return _Continuation(steps, waits_for)


class _Continuation(Coroutine[Any, Any, Result]):
    """The rest of a flow, as a coroutine.

    Args:
        steps: The flow.
        waits_for: Its first awaitable, which is closed with a coroutine that was never begun.
    """

    def __init__(self, steps: Steps[Result], waits_for: Awaitable[Any]) -> None:
        self._coroutine = _continued(steps, waits_for)
        self._first: Awaitable[Any] | None = waits_for

    def send(self, value: object) -> Any:
        """Go on."""
        self._first = None
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an error."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End it; otherwise Python warns that the embedder was not awaited."""
        self._coroutine.close()
        if isinstance(self._first, Coroutine):
            self._first.close()

    def __await__(self) -> Generator[Any, Any, Result]:
        self._first = None
        return self._coroutine.__await__()


async def _continued(steps: Steps[Result], waits_for: Awaitable[Any]) -> Result:
    try:
        while True:
            try:
                value = await waits_for
            except Exception as error:  # noqa: BLE001 - the flow decides
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(value)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        steps.close()


def is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    """Return whether a value is awaited in place of being used."""
    return type(value) is not np.ndarray and isinstance(value, Awaitable)


def _called(call: Callable[..., object], argument: object) -> Steps[object]:
    returned = call(argument)
    if is_awaitable(returned):
        returned = yield returned
    return returned


async def _gathered(
    call: Callable[..., Any], first: Awaitable[Any], texts: Sequence[str]
) -> list[Vectors]:
    """Return the vectors of the first text, whose call was made, and of further ones."""
    import asyncio  # noqa: PLC0415 - a third of the import budget, seldom used

    slots = asyncio.Semaphore(AWAITED_AT_ONCE)

    async def later(text: str) -> Vectors:
        async with slots:
            return _one_vector(await call(text))

    try:
        async with asyncio.TaskGroup() as group:
            begun = [_awaited(first), *map(later, texts)]
            tasks = [group.create_task(each) for each in begun]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def _awaited(awaitable: Awaitable[object]) -> Vectors:
    return _one_vector(await awaitable)


def _one_vector(returned: object) -> Vectors:
    """Return a copy of a vector: the next call may write to the same array."""
    vector = _numbers(returned)
    if vector.ndim == _VECTORS and len(vector) == 1:
        return vector.reshape(-1).copy()
    if vector.ndim == _VECTOR and vector.size:
        return vector.copy()
    raise EmbedderResultError(f"it returned shape {vector.shape} for one text")


def _stacked(rows: list[Vectors]) -> Vectors:
    if len({row.shape for row in rows}) > 1:
        lengths = sorted({row.size for row in rows})
        raise EmbedderResultError(f"it returned vectors of different lengths: {lengths}")
    return np.stack(rows)


def _numbers(returned: object) -> Vectors:
    """Return a result as an array of numbers."""
    if type(returned) is np.ndarray and returned.dtype.kind in _NUMBERS:
        return returned
    if isinstance(returned, Iterator):
        returned = list(returned)
    try:
        with np.errstate(over="ignore"):  # infinite ones are refused later
            found: NDArray[Any] = np.asarray(returned)
    except (TypeError, ValueError, RuntimeError):  # lists of different lengths, tensors
        if advice := tensor_advice(returned):
            raise EmbedderResultError(f"it returned {described(returned)}{advice}") from None
        found = np.array(None)  # no number
    if found.dtype.kind not in _NUMBERS:
        raise EmbedderResultError(f"it returned {described(returned)}, which is not numbers")
    return found
