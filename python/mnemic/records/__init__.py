"""Public records: their bases and forms, sequences of them, and what their repr hides."""

from abc import ABCMeta
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from enum import Enum
from functools import total_ordering
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import InvalidArgumentError, InvalidEntryError, MnemicError
from mnemic.records.lines import list_lines, list_title
from mnemic.records.secrets import RedactedStr, safe, without_passwords
from mnemic.reporting import habits
from mnemic.reporting.description import hidden, quoted
from mnemic.reporting.habits import AnswersHabits
from mnemic.reporting.near_names import explain_failure


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


Item = TypeVar("Item", covariant=True)  # noqa: PLC0105 - as that of Sequence
Member = TypeVar("Member", bound=Record)


class _SequenceMeta(type(msgspec.Struct), ABCMeta):  # type: ignore[misc]
    """Both the metaclass of structs and that of sequences."""


class Listing(Record, AnswersHabits, Sequence[Item], frozen=True, metaclass=_SequenceMeta):
    """A record that is a sequence of its memories or hits.

    Attributes:
        _items_field: The field that has them.
        _entry_fields: Fields of the memories, which are columns of a data frame.
        _hit_fields: Fields of the hits that are columns before them.
        _marks: Fields that the repr shows where they are neither None nor False.
        _nouns: Names of one item and of several.
    """

    _habits: ClassVar[Mapping[str, str]] = habits.RESULTS
    _items_field: ClassVar[str]
    _entry_fields: ClassVar[tuple[str, ...]]
    _hit_fields: ClassVar[tuple[str, ...]] = ("score",)
    _total_field: ClassVar[str] = ""
    _marks: ClassVar[tuple[str, ...]] = ()
    _nouns: ClassVar[tuple[str, str]] = ("hit", "hits")

    @property
    def _items(self) -> tuple[Item, ...]:
        items: tuple[Item, ...] = getattr(self, self._items_field)
        return items

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Item]: ...
    def __getitem__(self, at: int | slice) -> Item | Sequence[Item]:
        try:
            return self._items[at]
        except TypeError:
            raise self._no_item(at) from None

    def _no_item(self, key: object) -> TypeError:
        """Return the error of a key that is no number."""
        if not isinstance(key, str):
            return habits.item(self, key, "items have numbers: results[0]")
        return habits.item(self, key, self._habits.get(key, self._habits[habits.OTHERWISE]))

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with one row for each item, in their order.

        Columns are the fields of the hit, those of its memory, and the parts of its score as
        `components.keyword` or `scores.recency`. Times are of dtype datetime64 in UTC, ids are
        texts, enums are words; `embedding` is a column where a memory has one. An empty list gives
        all columns without rows. Contents of sensitive memories are in it.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        from mnemic.records.display import frame_of  # noqa: PLC0415 - loaded where it is used

        return frame_of(self._items, self._hit_fields, self._entry_fields)

    def _repr_html_(self) -> str:
        """Return a table for notebooks; contents of sensitive memories are hidden."""
        from mnemic.records.display import list_html  # noqa: PLC0415 - loaded where it is used

        return list_html(self._items, f"{type(self).__name__}: {self._title}")

    def __rich_console__(self, _console: object, _options: object) -> Iterator[object]:
        """Give the package rich a table; contents of sensitive memories are hidden."""
        from mnemic.records.display import rich_table  # noqa: PLC0415 - rich calls this

        yield rich_table(self._items, f"{type(self).__name__}: {self._title}")

    @property
    def _title(self) -> str:
        marks = ((name, getattr(self, name)) for name in self._marks)
        total = getattr(self, self._total_field) if self._total_field else None
        return list_title(len(self), self._nouns, total, marks)

    def __repr__(self) -> str:
        return list_lines(type(self).__name__, self._items, self._title)


class RecordList(list[Member], AnswersHabits):
    """A list of memories or hits, with what holds of the call that returned it.

    Attributes:
        _marks: Attributes that `to_dict` has, and the repr where they are not empty.
        _nouns: Names of one item and of several.
    """

    _habits: ClassVar[Mapping[str, str]] = habits.ADDED
    _marks: ClassVar[tuple[str, ...]] = ()
    _nouns: ClassVar[tuple[str, str]] = ("hit", "hits")

    def to_dict(self) -> dict[str, Any]:
        """Return a new dict of plain JSON types: the items as `memories`, and the marks."""
        from mnemic.records.plain import plain  # noqa: PLC0415 - loaded where it is used

        marks = {name: plain(getattr(self, name)) for name in self._marks}
        return {"memories": [item.to_dict() for item in self], **marks}

    def __repr__(self) -> str:
        marks = ((name, _mark(getattr(self, name))) for name in self._marks)
        title = list_title(len(self), self._nouns, None, marks)
        return list_lines(type(self).__name__, self, title)


def _mark(value: Any) -> Any:
    """Return a mark for a repr: the number of several, None of none."""
    return len(value) or None if isinstance(value, tuple) else value


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


if TYPE_CHECKING:
    from inspect import Parameter

    from msgspec import StructMeta as _StructMeta
else:
    _StructMeta = type(msgspec.Struct)  # its name is not public in every version


class NamedFields(_StructMeta):
    """The class of records that a program makes itself.

    A field that does not exist, or is missing, raises `ArgumentMismatchError`. Making a record
    takes 1 µs more than without it, so records of results are of another class.

    Attributes:
        _aliases: Further names of fields, which making a record takes, each with its field.
        _first: The field that may be given by position, where all else is given by name.
    """

    _aliases: ClassVar[Mapping[str, str]] = {}
    _first: ClassVar[str | None] = None

    if not TYPE_CHECKING:  # the records declare their fields

        def __call__(cls, *values: object, **named: object) -> object:  # noqa: N805 - of a metaclass
            """Make a record."""
            try:
                if cls._aliases:
                    named = without_aliases(named, cls._aliases)
                if cls._first is not None and len(values) == 1 and cls._first not in named:
                    values, named = (), {cls._first: values[0], **named}
                return super().__call__(*values, **named)
            except (TypeError, MnemicError) as error:
                explain_failure(error, cls, values, named, tuple(cls._aliases))
                raise


def without_aliases(given: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Return fields by their documented names.

    Raises:
        InvalidArgumentError: If one is given by both names.
    """
    named = dict(given)
    for alias, field in aliases.items():
        if alias in named:
            if field in named:
                raise InvalidArgumentError(
                    f"{alias} and {field} are the same option; give one of them"
                )
            named[field] = named.pop(alias)
    return named


class ContentFirst(NamedFields):
    """The class of memories: the content may be given by position, all else by name."""

    _first = "content"

    if not TYPE_CHECKING:  # the record declares what it takes

        @property
        def __signature__(cls) -> object:  # noqa: N805 - of a metaclass
            """The signature, without the declarations of the fields."""
            from inspect import Parameter, Signature  # noqa: PLC0415 - takes 12 ms

            fields = {name: _bare(each) for name, each in super().__signature__.parameters.items()}
            content = fields.pop("content").replace(kind=Parameter.POSITIONAL_OR_KEYWORD)
            return Signature([content, *fields.values()])


def _bare(parameter: "Parameter") -> "Parameter":
    """Return a parameter whose annotation is the type alone, without what `Annotated` adds."""
    kind = parameter.annotation
    return parameter.replace(annotation=kind.__origin__ if hasattr(kind, "__metadata__") else kind)


@total_ordering
class NumberedEnum(Enum):
    """Enumeration of words, each with a number that files and indexes store.

    The value of a member is its word, so that JSON has words. A member is equal to its number,
    ordered by it, and found by either: `MemoryType(0) is MemoryType("fact")`.
    """

    _value_: str
    _noun: str  # pyright: ignore[reportUninitializedInstanceVariable] - set for each class
    number: int  # pyright: ignore[reportUninitializedInstanceVariable] - set for each member

    def __init_subclass__(cls, *, noun: str = "value") -> None:
        """Make an enumeration; errors name the field by its noun."""
        super().__init_subclass__()
        cls._noun = noun

    def __new__(cls, word: str, number: int) -> Self:
        """Make a member whose value is the word."""
        member = object.__new__(cls)
        member._value_ = word
        member.number = number
        return member

    @classmethod
    def numbered(cls, number: int) -> Self:
        """Return the member with a number.

        Args:
            number: The stored number.

        Raises:
            ValueError: If there is none.
        """
        for member in cls:
            if member.number == number:
                return member
        raise ValueError(f"{number} is no number of a {cls.__name__}")

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the member that a value names.

        Args:
            value: The member, its word in any case, or its number.

        Raises:
            InvalidEntryError: If there is none.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        if isinstance(value, int) and not isinstance(value, bool) and value in map(int, cls):
            return cls.numbered(value)
        known = ", ".join(each.name.lower() for each in cls)
        raise InvalidEntryError(f"{cls._noun} {quoted(value)} is unknown; it is one of {known}")

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if isinstance(value, int) and not isinstance(value, bool):
            return cls.numbered(value)
        return None

    def __eq__(self, other: object) -> bool:
        """Whether it is the same member, or a member's number."""
        return self is other or (isinstance(other, int) and self.number == other)

    def __hash__(self) -> int:
        """Hash of the number, which is equal to it."""
        return self.number

    def __lt__(self, other: object) -> bool:
        """Whether the number is lower, beside a member of the same enumeration or a number."""
        if isinstance(other, type(self)):
            return self.number < other.number
        return self.number < other if isinstance(other, int) else NotImplemented

    def __bool__(self) -> bool:
        """Whether the number is not 0, as of an int."""
        return self.number != 0

    def __int__(self) -> int:
        """The number."""
        return self.number

    def __index__(self) -> int:
        """The number."""
        return self.number

    def __str__(self) -> str:
        """The word."""
        return self._value_
