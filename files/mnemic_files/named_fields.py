"""Further keys of a memory file that set a field of its memory, as people write them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mnemic import MemoryType
from mnemic.errors import InvalidArgumentError
from mnemic_files.inside import described, validation

_YES: Final = frozenset(["true", "yes", "y", "on", "1"])
_NO: Final = frozenset(["false", "no", "n", "off", "0"])

_PERCENT: Final = 100


class FieldProblemError(Exception):
    """A value that cannot be used, or a part of it.

    Args:
        reason: The reason, without the value.
        value: What the field becomes; None leaves it as it is.
    """

    def __init__(self, reason: str, value: object = None) -> None:
        super().__init__(reason)
        self.value = value


def named_fields(keys: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that further keys set, and the reasons why others set none.

    Args:
        keys: The keys, with their values as JSON has them.
    """
    fields: dict[str, Any] = {}
    reasons: list[str] = []
    for name, read in _READERS.items():
        for value in _values(keys, name):
            if value is None:  # the key names no value
                continue
            try:
                fields[name] = read(value)
            except FieldProblemError as problem:
                reasons.append(str(problem))
                if problem.value is not None:
                    fields[name] = problem.value
            except InvalidArgumentError as error:
                reasons.append(f"{error}; the key is left out")
    return fields, reasons


def _values(keys: Mapping[str, Any], name: str) -> Iterator[Any]:
    """Yield the value of a key, in small letters or, if there is none, in others."""
    if name in keys:
        yield keys[name]
        return
    yield from [value for key, value in keys.items() if key.strip().lower() == name][:1]


def _sensitive(value: Any) -> bool:
    word = _word(value)
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise FieldProblemError(
        f"sensitive must be yes or no, got {described(value)}; it counts as sensitive", value=True
    )


def _tags(value: Any) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    found: dict[str, None] = {}
    reasons = []
    for tag in given if isinstance(given, list) else [given]:
        try:
            written = tag.strip() if isinstance(tag, str) else _text(tag)
            found[validation.name("a tag", written)] = None
        except InvalidArgumentError as error:
            reasons.append(str(error))
    if reasons:
        raise FieldProblemError(
            f"{len(reasons)} of its tags left out: {reasons[0]}", value=tuple(found)
        )
    return tuple(found)


def _importance(value: Any) -> float:
    word = _word(value)
    try:
        number = float(word.removesuffix("%"))
    except ValueError:
        raise InvalidArgumentError(
            f"importance must be a number from 0 to 1, got {described(value)}"
        ) from None
    return validation.fraction("importance", number / _PERCENT if word.endswith("%") else number)


def _type(value: Any) -> MemoryType:
    return MemoryType.parse(_word(value).replace(" ", "_").replace("-", "_"))


def _word(value: Any) -> str:
    """Return a text or a number as a word; that of a list is empty."""
    written = _text(value)
    return written.strip().lower() if isinstance(written, str) else ""


def _text(value: Any) -> Any:
    """Return a number or a bool as it is written in YAML, anything else itself."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_READERS: Final = {
    "type": _type,
    "tags": _tags,
    "importance": _importance,
    "sensitive": _sensitive,
}
