"""Records of options from dicts, JSON and TOML, with errors that name the path of a field."""

import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import msgspec

from mnemic.errors import InvalidArgumentError
from mnemic.records import Record
from mnemic.reporting.description import must_be, quoted
from mnemic.reporting.near_names import checks_arguments, nearest

Options = TypeVar("Options", bound=msgspec.Struct)


class CamelCaseRecord(Record, frozen=True):
    """A record whose plain form may have names in camelCase, as in JavaScript."""

    def to_dict(self, *, camel_case: bool = False) -> dict[str, Any]:
        """Return a new dict of plain JSON types.

        Args:
            camel_case: Whether names are in camelCase.
        """
        made = super().to_dict()
        return in_camel_case(made) if camel_case else made


class OptionsRecord(CamelCaseRecord, frozen=True):
    """A record of options, which is read from dicts, JSON and TOML."""

    @classmethod
    @checks_arguments
    def from_dict(cls, options: object) -> Self:
        """Return a record from a mapping; missing options are as by default.

        Args:
            options: Names in snake_case or camelCase, values of plain types; records are mappings
                too.

        Raises:
            InvalidArgumentError: If an option is unknown or out of range; the message has its path.
        """
        return cls(**fields_of(cls, options))

    @classmethod
    @checks_arguments
    def from_json(cls, text: str | bytes) -> Self:
        """Return a record from a JSON object; see `from_dict`.

        Args:
            text: The JSON, as a text or in UTF-8.

        Raises:
            InvalidArgumentError: If it is no JSON; or as of `from_dict`.
        """
        return cls.from_dict(parsed(msgspec.json.decode, text, "JSON"))

    @classmethod
    @checks_arguments
    def from_toml(cls, text: str | bytes) -> Self:
        """Return a record from a TOML document; see `from_dict`.

        Args:
            text: The TOML, as a text or in UTF-8.

        Raises:
            InvalidArgumentError: If it is no TOML; or as of `from_dict`.
        """
        return cls.from_dict(parsed(tomllib.loads, text, "TOML"))


def camel_case(name: str) -> str:
    """Return a field's name in camelCase."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def in_camel_case(value: Any) -> Any:
    """Return plain JSON types with the names of all fields in camelCase."""
    if isinstance(value, dict):
        return {camel_case(name): in_camel_case(item) for name, item in value.items()}
    if isinstance(value, list):
        return [in_camel_case(item) for item in value]
    return value


def fields_of(kind: type[msgspec.Struct], given: object, path: str = "") -> dict[str, Any]:
    """Return the fields of a mapping under their names in a record.

    Args:
        kind: The record, whose fields may be written in snake_case or camelCase.
        given: The mapping.
        path: Where it stands, such as "retrieval"; "" for the outermost.

    Raises:
        InvalidArgumentError: If it is no mapping, or a field is unknown or given twice.
    """
    if not isinstance(given, Mapping):
        raise must_be(path or kind.__name__, f"a mapping with fields of {kind.__name__}", given)
    known = field_names(kind)
    found: dict[str, Any] = {}
    for alias, value in given.items():
        name = known.get(alias) if isinstance(alias, str) else None
        if name is None:
            raise _unknown(kind, alias, path)
        if name in found:
            raise _given_under_two_names(
                name, [each for each in given if known.get(each) == name], path
            )
        found[name] = value
    return found


def field_names(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return the field's name by each of its names: snake_case, camelCase, and further ones.

    Further names are those of the mapping `_aliases` of the record, if it has one.
    """
    fields = {name: name for name in kind.__struct_fields__}
    aliases: Mapping[str, str] = getattr(kind, "_aliases", {})
    named = {**fields, **aliases}
    return named | {camel_case(alias): name for alias, name in named.items()}


def converted(kind: type[Options], given: object, path: str) -> Options:
    """Return a record of another module from a mapping; a record of this class is returned itself.

    Raises:
        InvalidArgumentError: If it has unknown fields, or values that the record refuses.
    """
    if isinstance(given, kind):
        return given
    fields = fields_of(kind, given, path)
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        cause = error.__cause__
        if cause is not None:  # the record's own words
            raise InvalidArgumentError(f"{path}: {cause}") from cause
        reason, _, place = str(error).partition(" - at `$")
        at = f"{path}{place.rstrip('`')}"
        raise InvalidArgumentError(f"{at}: {reason.replace('`', '')}") from None


def parsed(read: Callable[[str], Any], text: object, form: str) -> Any:
    """Return the value of a text.

    Args:
        read: Parses the text.
        text: A text, or its UTF-8 bytes.
        form: Name of the format.

    Raises:
        InvalidArgumentError: If it is not in this format; the message has the place.
    """
    if isinstance(text, bytes | bytearray):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"{form} must be UTF-8; it is not at byte {error.start}"
            ) from None
    if not isinstance(text, str):
        raise must_be(form, "a str or bytes", text)
    try:
        return read(text)
    except (msgspec.DecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidArgumentError(f"the text is no {form}: {error}") from None
    except (UnicodeEncodeError, RecursionError) as error:
        raise InvalidArgumentError(f"the text is no {form}: {type(error).__name__}") from None


def _unknown(kind: type[msgspec.Struct], name: object, path: str) -> InvalidArgumentError:
    known = ", ".join(kind.__struct_fields__)
    near = nearest(name, kind.__struct_fields__)
    shown = quoted(_joined(path, name) if isinstance(name, str) else name)
    hint = "there are" if near is None else f"did you mean {_joined(path, near)!r}? There are"
    return InvalidArgumentError(f"{kind.__name__} has no field {shown}; {hint} {known}")


def _given_under_two_names(name: str, aliases: list[str], path: str) -> InvalidArgumentError:
    written = " and as ".join(sorted(aliases, key=lambda alias: alias != name))
    return InvalidArgumentError(f"{_joined(path, name)} is given twice, as {written}")


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
