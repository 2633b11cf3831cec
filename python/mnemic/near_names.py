"""Errors about names: a call's arguments, a record's fields, a dict's keys; each with a suggestion.

Nothing here runs before a call has failed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from mnemic.description import quoted
from mnemic.errors import ArgumentMismatchError

if TYPE_CHECKING:
    from inspect import Parameter

Kind = TypeVar("Kind", bound=type)
Method = TypeVar("Method", bound=Callable[..., Any])

_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`; importing inspect takes 12 ms."""

_CONSTRUCTOR = "__init__"
_LIMIT = "limit", "k", "n"
_OTHER_WORDS = {
    **dict.fromkeys(("text", "message", "memory", "document", "body"), ("content", "query")),
    **dict.fromkeys(("q", "question", "prompt"), ("query",)),
    **dict.fromkeys(("k", "n", "top_k", "top_n", "n_results", "max_results", "size"), _LIMIT),
    **dict.fromkeys(("skip", "start"), ("offset",)),
    **dict.fromkeys(("where", "conditions"), ("filters", "filter")),
    **dict.fromkeys(("after", "from_date", "start_date"), ("since", "created_after")),
    **dict.fromkeys(("before", "to_date", "end_date"), ("until", "created_before")),
    **dict.fromkeys(("threshold", "cutoff", "score_threshold"), ("min_score", "min_similarity")),
    **dict.fromkeys(("ttl", "expires", "expiry", "expiration"), ("expires_at",)),
    **dict.fromkeys(("timestamp", "date", "time", "created"), ("created_at",)),
    **dict.fromkeys(("uid", "owner", "tenant"), ("user_id",)),
    **dict.fromkeys(("memory_id", "entry_id", "key"), ("id",)),
    **dict.fromkeys(("vectors", "query_vector", "embedding"), ("vector", "embeddings")),
    **dict.fromkeys(("embedding_function", "model", "encoder"), ("embedder",)),
    **dict.fromkeys(("filename", "file", "url", "database", "db"), ("path",)),
    **dict.fromkeys(("mode", "kind"), ("search_type", "type")),
    **dict.fromkeys(("hard", "forever"), ("permanent",)),
    **dict.fromkeys(("namespace", "project"), ("project_id",)),
    **dict.fromkeys(("not_in", "notin"), ("nin",)),
    **dict.fromkeys(("startswith", "starts_with"), ("prefix",)),
    **dict.fromkeys(("like", "includes", "has"), ("contains",)),
}
"""Words of other libraries, and the names here that they may stand for, the likeliest first."""


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one most likely stands for; None if none is near."""
    if not isinstance(name, str):
        return None
    from difflib import get_close_matches  # noqa: PLC0415 - after an error alone

    names = {each.lower(): each for each in known}
    words = [word for word in _OTHER_WORDS.get(name.lower(), ()) if word in names]
    close = words or get_close_matches(name.lower(), names, 1)
    return names[close[0]] if close else None


def unknown_name(noun: str, name: object, known: Collection[str]) -> str:
    """Return the message about an unknown name, with the nearest one and all that there are."""
    near = nearest(name, known)
    start = f"there is no {noun} {quoted(name)}; "
    if near is None:
        return f"{start}there are {', '.join(known)}"
    return f"{start}did you mean {near!r}? There are {', '.join(known)}"


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return the end of a message that suggests the nearest name; "" if none is near."""
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near!r}?"


def _hint(name: str, known: Sequence[str]) -> str:
    return suggestion(name, known) or f"; it takes {', '.join(known)}"


def check_call(
    name: str,
    called: Callable[..., object],
    values: Sequence[object],
    named: Mapping[str, object],
    further: Sequence[str] = (),
) -> None:
    """Raise if the arguments of a failed call do not fit its signature.

    Args:
        name: The public name of the function.
        called: A function, a bound method or a class.
        values: The arguments by position.
        named: The arguments by name.
        further: Names that it takes beside those of its signature.

    Raises:
        ArgumentMismatchError: If an argument is unknown, missing, given twice, or one too many.
    """
    from inspect import signature  # noqa: PLC0415 - after an error alone

    parameters = list(signature(called).parameters.values())
    for problem in _problems(parameters, values, named, further):
        raise ArgumentMismatchError(f"{name}() {problem}") from None


def check_method(
    this: object,
    method: Callable[..., object],
    values: Sequence[object],
    named: Mapping[str, object],
) -> None:
    """Raise if the arguments of a failed call of a method do not fit its signature.

    Args:
        this: The first argument: the object, or the class of a class method.
        method: The method.
        values: The other arguments by position.
        named: The arguments by name.

    Raises:
        ArgumentMismatchError: As of `check_call`, or if the method was called on its class.
    """
    if not hasattr(this, method.__name__):
        raise ArgumentMismatchError(
            f"{method.__name__}() was called on a class; call it on an open object: "
            f"Memory(path).{method.__name__}(…)"
        ) from None
    check_call(method_name(this, method), partial(method, this), values, named)


def _problems(
    parameters: Sequence["Parameter"],
    values: Sequence[object],
    named: Mapping[str, object],
    further: Sequence[str],
) -> Iterator[str]:
    """Yield what does not fit, unknown names first: a missing argument often has a wrong name."""
    placed = [each.name for each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]
    known = [*(name for each in parameters for name in _names(each)), *further]
    unused = [name for name in known if name not in named]
    for name in named:
        if name not in known:
            yield f"has no argument {quoted(name)}{_hint(name, unused)}"
    if len(values) > len(placed):
        limit = f"only {', '.join(placed)}" if placed else "nothing"
        yield f"takes {limit} by position, got {len(values)} values; name the others"
    given = {*placed[: len(values)], *named}
    for name in placed[: len(values)]:
        if name in named:
            yield f"got {name!r} twice, by position and by name"
    for each in parameters:
        if each.default is each.empty and each.kind < each.VAR_KEYWORD and each.name not in given:
            yield f"needs the argument {each.name!r}"


def _names(parameter: "Parameter") -> Iterable[str]:
    """Return the names that a parameter takes; several for `**options: Unpack[Options]`."""
    if parameter.kind is not parameter.VAR_KEYWORD:
        return [parameter.name]
    return [name for fields in get_args(parameter.annotation) for name in fields.__annotations__]


def names_arguments(kind: Kind) -> Kind:
    """Let the coroutine methods and the constructor of a class raise `ArgumentMismatchError`.

    Each is called within a `try`, which costs nothing unless the call fails; a coroutine method
    takes one more frame, about 1 µs.
    """
    members = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    for name, member in members.items():
        of_class = isinstance(member, classmethod)
        method = member.__func__ if of_class else member
        is_coroutine = isinstance(method, FunctionType) and method.__code__.co_flags & _COROUTINE
        if is_coroutine and not (name.startswith("_") or hasattr(method, "__wrapped__")):
            checked = _checked_coroutine(method)
            setattr(kind, name, classmethod(checked) if of_class else checked)
    if _CONSTRUCTOR in vars(kind):
        setattr(kind, _CONSTRUCTOR, checks_arguments(members[_CONSTRUCTOR]))
    return kind


def checks_arguments(method: Method) -> Method:
    """Let a plain method, a class method or a constructor raise `ArgumentMismatchError`."""

    @wraps(method)
    def call(this: Any, /, *values: Any, **named: Any) -> Any:
        try:
            return method(this, *values, **named)
        except TypeError:
            check_method(this, method, values, named)
            raise

    return cast("Method", call)


def checks_function(function: Method) -> Method:
    """Let a function, a static method or a coroutine function raise `ArgumentMismatchError`."""

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named)
        except TypeError:
            check_call(function.__qualname__, function, values, named)
            raise

    @wraps(function)
    async def call_awaited(*values: Any, **named: Any) -> Any:
        return await call(*values, **named)

    is_coroutine = function.__code__.co_flags & _COROUTINE
    return cast("Method", call_awaited if is_coroutine else call)


def method_name(this: object, method: Callable[..., object]) -> str:
    """Return the public name of a method, such as "Memory.search", or of a constructor."""
    kind = this.__name__ if isinstance(this, type) else type(this).__name__
    return kind if method.__name__ == _CONSTRUCTOR else f"{kind}.{method.__name__}"


def _checked_coroutine(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def call(this: Any, /, *values: Any, **named: Any) -> Any:
        try:
            return await method(this, *values, **named)
        except TypeError:
            check_method(this, method, values, named)
            raise

    return call
