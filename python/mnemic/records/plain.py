"""Plain JSON types from records: dicts, lists, texts, numbers, booleans, None."""

import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any

import msgspec

_PLAIN = (str, int, bool, type(None))


def plain_record(record: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a record, converted by `plain`, after its tag if it has one."""
    left_out: frozenset[str] = getattr(record, "_left_out", frozenset())
    config = record.__struct_config__
    made: dict[str, Any] = {} if config.tag is None else {str(config.tag_field): config.tag}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if value is not None or name not in left_out:
            made[name] = plain(value)
    return made


def plain(value: Any) -> Any:
    """Return a value as plain JSON types; numbers that JSON lacks are None.

    Raises:
        TypeError: If JSON has no form for it.
    """
    if value.__class__ in _PLAIN:
        return value
    for kind, form in _FORMS:
        if isinstance(value, kind):
            return form(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return msgspec.to_builtins(value, enc_hook=enc_hook)


def word(choice: Enum) -> str:
    """Return the word of a choice, which constructors and filters take in its place."""
    return choice.value if isinstance(choice.value, str) else choice.name.lower()


def enc_hook(value: Any) -> Any:
    """Return a value that msgspec does not encode by itself in plain types.

    For `msgspec.json.encode(entry, enc_hook=mnemic.model.enc_hook)` and other encoders of msgspec:
    arrays become lists.

    Args:
        value: What msgspec has no encoding for.

    Raises:
        NotImplementedError: If the value has no such form.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, int | str):
        return int(value) if isinstance(value, int) else str.__str__(value)
    raise NotImplementedError(f"mnemic has no plain form of a value of type {type(value).__name__}")


def _key(key: Any) -> str:
    made = plain(key)
    return made if isinstance(made, str) else str(made)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {_key(key): plain(item) for key, item in value.items()}


def _list(value: Iterable[Any]) -> list[Any]:
    return [plain(item) for item in value]


def _sorted(value: Iterable[Any]) -> list[Any]:
    return sorted(_list(value), key=str)


_FORMS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (float, _number),
    (Enum, word),
    (msgspec.Struct, plain_record),
    (str, str.__str__),
    (Mapping, _object),
    ((list, tuple), _list),
    (AbstractSet, _sorted),
)
"""Forms by class; the first that fits counts."""
