"""Records whose repr shows the length of their content in place of the content."""

from copy import copy
from typing import Any, ClassVar, TypeVar

from msgspec.structs import force_setattr

from mnemic.records import Record
from mnemic.records.secrets import RedactedStr, safe, without_passwords
from mnemic.reporting.description import hidden

Kind = TypeVar("Kind", bound=Record)


def with_checked(record: Kind, field: str, value: object) -> Kind:
    """Return a copy of a record with a checked value in a field; nothing is checked again."""
    made = copy(record)
    force_setattr(made, field, value)
    return made


class Redacted(Record, frozen=True):
    """A record whose repr hides fields, because reprs go into logs and error reports.

    Attributes:
        _hidden: Fields that may hold content, tags, metadata, queries or text derived from them.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset()

    def _hidden_fields(self) -> frozenset[str]:
        return self._hidden

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return without_passwords(f"{type(self).__name__}({shown})")

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the fields for `repr` and the package rich."""
        hides = self._hidden_fields()
        given = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [
            (
                name,
                RedactedStr(hidden(value))
                if name in hides and not _is_empty(value)
                else safe(value),
            )
            for name, value in given
        ]


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | tuple | list | dict) and not value)
