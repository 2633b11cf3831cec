"""Record, the base of all public records."""

from typing import Any, ClassVar

import msgspec

from mnemic.records.secrets import RedactedStr, safe, without_passwords

__all__ = ["Record", "RedactedStr"]


class Record(msgspec.Struct, frozen=True):
    """A public record: an immutable struct of msgspec, with plain forms of itself.

    Records are equal by their fields, and hashable: dicts in them count for equality alone.

    Attributes:
        _left_out: Fields that plain forms leave out where they are None.
    """

    _left_out: ClassVar[frozenset[str]] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return a new dict of plain JSON types, nested records included.

        Enums are words, times are in ISO 8601, UUIDs are texts, tuples and arrays are lists. A
        memory without an embedding has none in the dict. Contents of sensitive memories are in it.
        """
        from mnemic.records.plain import plain_record  # noqa: PLC0415 - loaded where it is used

        return plain_record(self)

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return msgspec.json.encode(self.to_dict()).decode()

    def __hash__(self) -> int:
        try:
            return super().__hash__()
        except TypeError:  # a dict has none
            values = (getattr(self, name) for name in self.__struct_fields__)
            return hash((type(self), *filter(_is_hashable, values)))

    def __repr__(self) -> str:
        return without_passwords(super().__repr__())

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the fields for the package rich."""
        return [(name, safe(getattr(self, name))) for name in self.__struct_fields__]


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
