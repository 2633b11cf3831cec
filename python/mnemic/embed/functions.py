"""Calls functions that embed texts: plain or awaitable, of one text or of several.

Each flow is a generator that yields the awaitables it waits for, so that it serves functions and
coroutine functions alike: `run` returns its result, or a coroutine of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

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


class EmbeddingFunction:
    """A function from a text to its vector, or from a list of texts to theirs.

    Where it is unknown which, the first call finds it out. It passes at least two texts, so that
    vectors of several texts are distinguished from a vector of all of them, and from the vectors of
    characters. A function that raises for a list may have failed by chance, so it is one of one
    text if it raises twice. One that returns numbers for a list is one of one text only if they are
    a vector as long as that of a text: another number of rows than of texts belongs to no text.

    Args:
        owner: The object that has the function.
        name: Its name, looked up at each call, as a plain call of it would.
        takes_many: Whether it takes a list of texts, an attribute too; None until it is known.
    """

    def __init__(self, owner: object, name: str, *, takes_many: bool | None = None) -> None:
        self._owner = owner
        self._name = name
        self.takes_many = takes_many
        self._times_raised = 0

    def vectors(self, texts: list[str]) -> Vectors | Awaitable[Vectors]:
        """Return the vectors of texts, at least one, or an awaitable of them.

        Args:
            texts: The texts; the function may change the list.

        Raises:
            EmbedderResultError: If the function returns something else.
        """
        if self.takes_many is None:
            return run(self._found_out(texts))
        if not self.takes_many:
            return self._of_each(texts)
        returned = getattr(self._owner, self._name)(texts)
        if type(returned) is np.ndarray and returned.dtype.kind in _NUMBERS:
            return returned
        if not is_awaitable(returned):
            return _numbers(returned)
        return _Continuation(_awaited(returned, _numbers), returned)

    def _of_each(self, texts: Sequence[str]) -> Vectors | Awaitable[Vectors]:
        """Call a function of one text for each; calls of a coroutine function run at once."""
        call = getattr(self._owner, self._name)
        vectors: list[Vectors] = []
        for position, text in enumerate(texts, 1):
            returned = call(text)
            if is_awaitable(returned):
                gathered = _gathered(call, vectors, returned, texts[position:])
                return _Continuation(gathered, returned)
            vectors.append(_one_vector(returned))
        return _stacked(vectors)

    def _found_out(self, texts: list[str]) -> Steps[Vectors]:
        tried = texts if len(texts) > 1 else [texts[0], texts[0]]
        found = yield from self._tried(tried)
        if not isinstance(found, str) and found.ndim == _VECTORS and len(found) == len(tried):
            self.takes_many = True
            return found[: len(texts)]
        said = found if isinstance(found, str) else f"returned shape {found.shape}"
        reason = f"of a list of {len(tried)} texts it {said}"
        if isinstance(found, str) or found.ndim == _VECTOR:
            vectors = yield from self._tried_each(texts, found)
            if not isinstance(vectors, str):
                return vectors
            reason += f", and of one text: {vectors}"
        raise EmbedderResultError(
            f"{reason}. An embedder returns a vector for a text, or a list of vectors, one for "
            "each, for a list of texts"
        )

    def _tried(self, texts: list[str]) -> Steps[Vectors | str]:
        """Return what a function returns for texts, or a description of it if it is no numbers."""
        try:
            returned = getattr(self._owner, self._name)(list(texts))  # which it may change
            if is_awaitable(returned):
                returned = yield returned
        except _ARGUMENT_ERRORS as error:  # a list may not be its argument
            self._times_raised += 1
            return f"raised {type(error).__name__}"
        try:
            return _numbers(returned)
        except EmbedderResultError:
            return f"returned {described(returned)}"

    def _tried_each(self, texts: list[str], found: Vectors | str) -> Steps[Vectors | str]:
        """Return the vectors of each text, or a description where they do not fit those found."""
        try:
            vectors = self._of_each(texts)
            if isinstance(vectors, Awaitable):
                vectors = yield vectors
        except EmbedderResultError as error:
            return str(error)
        if not isinstance(found, str) and found.shape != vectors.shape[1:]:
            return f"it returned shape {vectors.shape[1:]}"
        if self._times_raised != 1:
            self.takes_many = False
        return vectors


def run(steps: Steps[Result]) -> Result | Awaitable[Result]:
    """Return the result of a flow, or an awaitable of it if the flow waits for one."""
    try:
        waits_for = next(steps)
    except StopIteration as end:
        result: Result = end.value
        return result
    return _Continuation(_continued(steps, waits_for), waits_for)


class _Continuation(Coroutine[Any, Any, Result]):
    """A coroutine that waits for an awaitable at first.

    Args:
        coroutine: The coroutine.
        waits_for: The awaitable, which is closed with a coroutine that was never begun.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Result], waits_for: Awaitable[Any]) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def send(self, value: object) -> Any:
        """Go on."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an error."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End it; otherwise Python warns that the embedder was not awaited."""
        self._coroutine.close()
        if isinstance(self._waits_for, Coroutine):
            self._waits_for.close()

    def __await__(self) -> Generator[Any, Any, Result]:
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


async def _awaited(awaitable: Awaitable[object], read: Callable[[object], Vectors]) -> Vectors:
    return read(await awaitable)


async def _gathered(
    call: Callable[..., Any], done: list[Vectors], first: Awaitable[Any], texts: Sequence[str]
) -> Vectors:
    """Return the vectors that are done, of the text whose call was made, and of further ones."""
    import asyncio  # noqa: PLC0415 - a third of the import budget, seldom used

    slots = asyncio.Semaphore(AWAITED_AT_ONCE)

    async def later(text: str) -> Vectors:
        async with slots:
            returned = call(text)
            return _one_vector(await returned if is_awaitable(returned) else returned)

    try:
        async with asyncio.TaskGroup() as group:
            begun = [_awaited(first, _one_vector), *map(later, texts)]
            tasks = [group.create_task(each) for each in begun]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return _stacked([*done, *(task.result() for task in tasks)])


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
