"""Errors about names: a call's arguments, a record's fields, a dict's keys; each with a suggestion.

Nothing here runs before a call has failed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial, wraps
from itertools import product
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from mnemic.errors import ArgumentMismatchError, MnemicError
from mnemic.reporting.description import MAX_WORD_LENGTH, quoted
from mnemic.reporting.tracebacks import end_at_verb

if TYPE_CHECKING:
    from inspect import Parameter, Signature

Kind = TypeVar("Kind", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`; importing inspect takes 12 ms."""

_ALIKE = 0.8
"""Least share of letters that names or words have in common; `agent_id` and `entry_id` have .75."""

_MIN_WORD = 3
_QUALIFIERS = {"add", "has", "include", "max", "min", "total", "was", "with"}
"""Words that names have in common and mean something else by."""

_CONSTRUCTOR = "__init__"
_FIRST_OF_METHODS = ("self",), ("cls",)


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one most likely stands for; None if none is near."""
    if not isinstance(name, str) or len(name) > MAX_WORD_LENGTH:  # comparing takes its square
        return None
    from difflib import get_close_matches  # noqa: PLC0415 - after an error alone

    from mnemic.reporting.hints import OTHER_WORDS  # noqa: PLC0415 - as above

    wrong, names = name.lower(), {each.lower(): each for each in known}
    meant = [here for here, words in OTHER_WORDS.items() if wrong in words and here in names]
    close = meant or [near for near in get_close_matches(wrong, names) if _is_alike(wrong, near)]
    return names[close[0]] if close else None


def _is_alike(wrong: str, near: str) -> bool:
    """Return whether two names differ by a slip, or have a word in common.

    As many letters have `user_id` and `search_in` in common, which mean nothing alike.
    """
    from difflib import SequenceMatcher  # noqa: PLC0415 - as above

    words = [(a, b) for a, b in product(_words(wrong), _words(near)) if a[0] == b[0]]
    return any(SequenceMatcher(None, a, b).ratio() >= _ALIKE for a, b in [(wrong, near), *words])


def _words(name: str) -> list[str]:
    words = name.strip("$").split("_")
    return [word for word in words if len(word) >= _MIN_WORD and word not in _QUALIFIERS]


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return the end of a message that suggests the nearest name; "" if none is near."""
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near!r}?"


def unknown_name(noun: str, name: object, known: Collection[str]) -> str:
    """Return the message about an unknown name, with all that there are and the nearest one."""
    return f"there is no {noun} {quoted(name)}, only {', '.join(known)}{suggestion(name, known)}"


def explain_failure(
    error: BaseException,
    called: Callable[..., object],
    values: Sequence[object],
    named: Mapping[str, object],
    further: Sequence[str] = (),
) -> None:
    """Make the error of a failed call, which is being handled, one that its caller can read.

    Args:
        error: The error.
        called: A function, a method as its class has it, or a class.
        values: The arguments by position, with the object or class of a method first.
        named: The arguments by name.
        further: Names that it takes beside those of its signature.

    Raises:
        ArgumentMismatchError: If an argument is unknown, missing, given twice, or one too many; or
            if a method was called on its class.
    """
    if isinstance(error, TypeError):
        wrong = _mismatch(called, values, named, further)
        if wrong is not None:
            raise ArgumentMismatchError(wrong) from None
    end_at_verb(error, getattr(called, "__code__", None))


def _mismatch(
    called: Callable[..., object],
    values: Sequence[object],
    named: Mapping[str, object],
    further: Sequence[str],
) -> str | None:
    """Return how the arguments of a call do not fit its signature; None if they do."""
    from inspect import signature  # noqa: PLC0415 - after an error alone

    name = called.__qualname__
    if isinstance(called, FunctionType) and called.__code__.co_varnames[:1] in _FIRST_OF_METHODS:
        method = called.__name__
        if not values or not hasattr(values[0], method):
            return (
                f"{method}() was called on a class; call it on an open object: "
                f"Memory(path).{method}(…)"
            )
        name = _public_name(method, values[0])
        called, values = partial(called, values[0]), values[1:]
    shape = signature(called, eval_str=True)
    known = [*(each for one in shape.parameters.values() for each in _names(one)), *further]
    unused = [each for each in known if each not in named]
    for each in named:
        if each not in known:
            return f"{name}() has no argument {quoted(each)}{_hint(name, each, unused)}"
    try:
        shape.bind(*values, **{each: named[each] for each in named if each not in further})
    except TypeError as error:
        missing = _missing(shape, values, named)
        if len(missing) > 1:
            return f"{name}(): missing required arguments: {', '.join(map(repr, missing))}"
        placed = [each.name for each in shape.parameters.values() if each.kind < each.KEYWORD_ONLY]
        is_long = len(values) > len(placed)
        hint = f"; by position it takes {', '.join(placed) or 'nothing'}" if is_long else ""
        return f"{name}(): {error}{hint}"
    return None


def _hint(call: str, name: str, unused: Sequence[str]) -> str:
    """Return the end of a message about an unknown argument: what to do in its place."""
    from mnemic.reporting.hints import advice  # noqa: PLC0415 - as above

    known = advice(call, name)
    if known is not None:
        return f"; {known}"
    return suggestion(name, unused) or f"; it takes {', '.join(unused)}"


def _missing(
    shape: "Signature", values: Sequence[object], named: Mapping[str, object]
) -> list[str]:
    """Return the names of the arguments that must be given and are not."""
    placed = [each for each in shape.parameters.values() if each.kind < each.KEYWORD_ONLY]
    unnamed = (each for each in placed[len(values) :] if each.kind < each.VAR_POSITIONAL)
    others = (each for each in shape.parameters.values() if each.kind is each.KEYWORD_ONLY)
    return [
        each.name
        for each in (*unnamed, *others)
        if each.default is each.empty and each.name not in named
    ]


def _public_name(method: str, this: object) -> str:
    """Return the public name of a method, such as "Memory.search"."""
    kind = this if isinstance(this, type) else type(this)
    return kind.__name__ if method == _CONSTRUCTOR else f"{kind.__name__}.{method}"


def _names(parameter: "Parameter") -> Iterable[str]:
    """Return the names that a parameter takes; several for `**options: Unpack[Options]`."""
    if parameter.kind is not parameter.VAR_KEYWORD:
        return [parameter.name]
    return [name for fields in get_args(parameter.annotation) for name in fields.__annotations__]


def checks_arguments(function: Function) -> Function:
    """Let a function, a method or a constructor explain its errors to its caller.

    It is called within a `try`, which costs nothing unless the call fails, and one more frame, of
    about 1 µs.
    """

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named)
        except (TypeError, MnemicError) as error:
            explain_failure(error, function, values, named)
            raise

    @wraps(function)
    async def call_awaited(*values: Any, **named: Any) -> Any:
        try:
            return await function(*values, **named)
        except (TypeError, MnemicError) as error:
            explain_failure(error, function, values, named)
            raise

    return cast("Function", call_awaited if is_coroutine(function) else call)


def names_arguments(kind: Kind) -> Kind:
    """Let the public methods and the constructor of a class explain their errors."""
    members = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    for name, member in members.items():
        method = getattr(member, "__func__", member)  # of a class method or a static one
        is_public = isinstance(method, FunctionType) and not name.startswith("_")
        is_own_constructor = name == _CONSTRUCTOR and name in vars(kind)
        if (is_public or is_own_constructor) and not hasattr(method, "__wrapped__"):
            checked = checks_arguments(method)
            setattr(kind, name, checked if method is member else type(member)(checked))
    return kind


def is_coroutine(member: object) -> bool:
    """Return whether a member of a class is a coroutine method."""
    return isinstance(member, FunctionType) and bool(member.__code__.co_flags & _COROUTINE)
