"""Further keys of a memory file that set a field of its memory, as people write them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from mnemic import MemoryType
from mnemic.errors import InvalidArgumentError
from mnemic_files.inside import described, validation

_YES: Final = frozenset(["true", "yes", "y", "on", "1"])
_NO: Final = frozenset(["false", "no", "n", "off", "0"])

_PERCENT: Final = 100

_Read: TypeAlias = tuple[Any, str | None]
"""What a field becomes, and what of the value could not be used."""


def named_fields(keys: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that further keys set, and the reasons why others set none.

    Args:
        keys: The keys, in small letters or others, with their values as JSON has them.
    """
    fields: dict[str, Any] = {}
    reasons: list[str] = []
    given = {key.strip().lower(): value for key, value in keys.items()} | dict(keys)
    for name, read in _READERS.items():
        if given.get(name) is None:  # the key names no value
            continue
        try:
            fields[name], reason = read(given[name])
        except InvalidArgumentError as error:
            reason = f"{error}; the key is left out"
        if reason is not None:
            reasons.append(reason)
    return fields, reasons


def _sensitive(value: Any) -> _Read:
    word = _word(value)
    if word in _YES or word in _NO:
        return word in _YES, None
    return True, f"sensitive must be yes or no, got {described(value)}; it counts as sensitive"


def _tags(value: Any) -> _Read:
    given = [tag.strip() for tag in value.split(",")] if isinstance(value, str) else value
    found: dict[str, None] = {}
    reasons = []
    for tag in given if isinstance(given, list) else [given]:
        try:
            found[validation.name("a tag", _text(tag))] = None
        except InvalidArgumentError as error:
            reasons.append(str(error))
    problem = f"{len(reasons)} of its tags left out: {reasons[0]}" if reasons else None
    return tuple(found), problem


def _importance(value: Any) -> _Read:
    word = _word(value)
    try:
        number = float(word.removesuffix("%"))
    except ValueError:
        raise InvalidArgumentError(
            f"importance must be a number from 0 to 1, got {described(value)}"
        ) from None
    share = number / _PERCENT if word.endswith("%") else number
    return validation.fraction("importance", share), None


def _type(value: Any) -> _Read:
    return MemoryType.parse(_word(value).replace(" ", "_").replace("-", "_")), None


def _word(value: Any) -> str:
    """Return a text or a number as a word; that of a list is empty."""
    written = _text(value)
    return written.strip().lower() if isinstance(written, str) else ""


def _text(value: Any) -> Any:
    """Return a number or a bool as it is written in YAML, anything else itself."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_READERS: Final[Mapping[str, Callable[[Any], _Read]]] = {
    "type": _type,
    "tags": _tags,
    "importance": _importance,
    "sensitive": _sensitive,
}
