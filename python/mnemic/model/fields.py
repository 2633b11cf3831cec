"""Declarations of the fields of a memory; each annotation of `MemoryEntry` has one.

Checks, stored columns and their readers, filters and exports follow from the declarations: a module
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


# Traits. Whole numbers, because making an enumeration of flags takes a quarter of a millisecond.

GIVEN: Final = 1
"""A caller may give the field to a new memory."""

CHANGED: Final = 2
"""An update writes it."""

FILTERED: Final = 4
"""Filters test it, in SQL and in the index."""

INDEXED: Final = 8
"""The index reads it from a row, as it does every filtered field."""

HIDDEN: Final = 16
"""The repr of a sensitive memory hides it."""

ACCESS: Final = 32
"""Accesses change it; neither equality nor checksums include it."""

FILLED: Final = 64
"""Every stored memory has it; of a new one, the memory that stores it fills it in."""


class MemoryField(NamedTuple):
    """A field of a memory, as it is declared.

    Attributes:
        kind: Kind of its values.
        traits: The sum of its traits, such as `GIVEN | FILTERED`.
        column: Its stored name, which never changes. Empty for the field's name; None if the field
            is not stored in the memory's row.
        minimum: Smallest value of a whole number.
        sort_key: Its name in `MemorySortOrder`.
        export_version: Version of the export format that added it.
        name: Its name, also in filters and exports. The class gives it, and the default.
        default: Its default; `msgspec.NODEFAULT` if no memory can be made without it.
    """

    kind: Kind
    traits: int = 0
    column: str | None = ""
    minimum: int = 0
    sort_key: str | None = None
    export_version: int = 1
    name: str = ""
    default: Any = msgspec.NODEFAULT

    @property
    def is_required(self) -> bool:
        """Whether every stored memory has it, and no reader may go without it."""
        return self.default is msgspec.NODEFAULT or self.has(FILLED)

    @property
    def is_optional(self) -> bool:
        """Whether it may be None."""
        return self.default is None

    def has(self, traits: int) -> bool:
        """Return whether it has any of these traits."""
        return bool(self.traits & traits)


def declared_fields(record: type[msgspec.Struct]) -> tuple[MemoryField, ...]:
    """Return the fields of a record in order, from the declarations in its annotations.

    Raises:
        TypeError: If a field has no declaration.
    """
    names, defaults = record.__struct_fields__, record.__struct_defaults__
    required = (msgspec.NODEFAULT,) * (len(names) - len(defaults))
    return tuple(
        _declared_field(name, record.__annotations__[name], default)
        for name, default in zip(names, required + defaults, strict=True)
    )


def _declared_field(name: str, annotation: object, default: Any) -> MemoryField:
    """Return a field; `msgspec.structs.fields` would read the types too, and load numpy."""
    for given in getattr(annotation, "__metadata__", ()):
        if isinstance(given, MemoryField):
            factory = getattr(default, "factory", None)
            return given._replace(
                name=name,
                default=default if factory is None else factory(),
                column=name if given.column == "" else given.column,
            )
    raise TypeError(f"field {name} has no declaration; annotate it with a `MemoryField`")
