"""Declarations of the fields of a memory; each annotation of `MemoryEntry` has one.

Checks, stored columns and their readers, filters and exports follow from the declarations: a room
has one table, from the kinds of values to its treatment of them.
"""

import enum
from typing import Any, Final, NamedTuple

import msgspec


class Kind(enum.Enum):
    """Kind of the values of a field."""

    CONTENT = "content"
    NAME = "name"
    TYPE_NAME = "type_name"
    UUID = "uuid"
    TIME = "time"
    WHOLE = "whole"
    FRACTION = "fraction"
    FLAG = "flag"
    TYPE = "type"
    STATUS = "status"
    TAGS = "tags"
    METADATA = "metadata"
    VECTOR = "vector"


class Trait(enum.Flag):
    """Properties of a field.

    Attributes:
        GIVEN: A caller may give it to a new memory.
        CHANGED: An update writes it.
        FILTERED: Filters test it, in SQL and in the index.
        INDEXED: The index reads it from a row, as it does every filtered field.
        HIDDEN: The repr of a sensitive memory hides it.
        ACCESS: Accesses change it; neither equality nor checksums include it.
    """

    NONE = 0
    GIVEN = 1
    CHANGED = 2
    FILTERED = 4
    INDEXED = 8
    HIDDEN = 16
    ACCESS = 32


GIVEN: Final = Trait.GIVEN
CHANGED: Final = Trait.CHANGED
FILTERED: Final = Trait.FILTERED
INDEXED: Final = Trait.INDEXED
HIDDEN: Final = Trait.HIDDEN
ACCESS: Final = Trait.ACCESS


class Declared(NamedTuple):
    """Declaration of a field.

    Attributes:
        kind: Kind of its values.
        traits: Its properties.
        column: Its stored name, which never changes. Empty if it is the field's; None if the field
            is not stored in the memory's row.
        minimum: Smallest value of a whole number.
        sort_key: Its name in `MemorySortOrder`.
        export_version: Version of the export format that added it.
    """

    kind: Kind
    traits: Trait = Trait.NONE
    column: str | None = ""
    minimum: int = 0
    sort_key: str | None = None
    export_version: int = 1


class MemoryField(NamedTuple):
    """A field of a memory: its name and default, and its declaration.

    Attributes:
        name: Its name, also in filters and exports.
        default: Its default; `msgspec.NODEFAULT` if it is required.
        kind: As declared.
        traits: As declared.
        column: Its stored name; None if it is not stored in the memory's row.
        minimum: As declared.
        sort_key: As declared.
        export_version: As declared.
    """

    name: str
    default: Any
    kind: Kind
    traits: Trait
    column: str | None
    minimum: int
    sort_key: str | None
    export_version: int

    @property
    def is_required(self) -> bool:
        """Whether a memory cannot be made without it."""
        return self.default is msgspec.NODEFAULT

    @property
    def is_optional(self) -> bool:
        """Whether it may be None."""
        return self.default is None

    @property
    def is_indexed(self) -> bool:
        """Whether the index reads it from a row."""
        return bool(self.traits & (FILTERED | INDEXED))


def declared_fields(record: type[msgspec.Struct]) -> tuple[MemoryField, ...]:
    """Return the fields of a record in order, from the declarations in its annotations.

    Raises:
        TypeError: If a field has no declaration.
    """
    return tuple(map(_declared_field, msgspec.structs.fields(record)))


def _declared_field(info: msgspec.structs.FieldInfo) -> MemoryField:
    for given in getattr(info.type, "__metadata__", ()):
        if isinstance(given, Declared):
            factory = info.default_factory
            return MemoryField(
                name=info.name,
                default=info.default if factory is msgspec.NODEFAULT else factory(),
                kind=given.kind,
                traits=given.traits,
                column=info.name if given.column == "" else given.column,
                minimum=given.minimum,
                sort_key=given.sort_key,
                export_version=given.export_version,
            )
    raise TypeError(f"field {info.name} has no declaration; annotate it with `Declared`")
