"""Listing, the base of results and pages: a sequence of memories or hits."""

from abc import ABCMeta
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, overload

import msgspec

from mnemic.records.base import Record
from mnemic.records.lines import list_lines, list_title
from mnemic.reporting import habits
from mnemic.reporting.habits import AnswersHabits

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
        from mnemic.records.frame import frame_of  # noqa: PLC0415 - loaded where it is used

        return frame_of(self._items, self._hit_fields, self._entry_fields)

    def _repr_html_(self) -> str:
        """Return a table for notebooks; contents of sensitive memories are hidden."""
        from mnemic.records.page import list_html  # noqa: PLC0415 - loaded where it is used

        return list_html(self._items, f"{type(self).__name__}: {self._title}")

    def __rich_console__(self, _console: object, _options: object) -> Iterator[object]:
        """Give the package rich a table; contents of sensitive memories are hidden."""
        from mnemic.records.terminal import rich_table  # noqa: PLC0415 - rich calls this

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
