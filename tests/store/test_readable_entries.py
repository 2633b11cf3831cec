"""Lists in which entries whose seal is broken take no other's place."""

import sys

import pytest

from mnemic.errors import SealBrokenError
from mnemic.store.sql.conditions import NarrowingCondition
from mnemic.store.sql.lists import EntryList, first_readable
from mnemic.store.sql.reads import readable
from tests.support.entries import numbered

pytestmark = pytest.mark.requirement("R097", "C105")


class Rows:
    """Rows with the numbers 1, 2, 3 …, some of them broken."""

    def __init__(self, count, broken=()):
        self.stored = [(number,) for number in range(1, count + 1)]
        self.broken = set(broken)
        self.reads = []

    def read(self, wanted):
        self.reads.append(wanted.limit)
        return self.stored[wanted.offset : wanted.offset + wanted.limit]

    def entries_of(self, rows):
        if any(row in self.broken for (row,) in rows):
            raise SealBrokenError("broken", None)
        return [numbered(row) for (row,) in rows]

    def listed(self, limit, offset=0):
        wanted = EntryList(NarrowingCondition("1", [], True), None, "row", limit, offset)  # noqa: FBT003
        entries = first_readable(wanted, self.read, lambda rows: readable(rows, self.entries_of))
        return [entry.id.int for entry in entries]


def test_broken_entries_are_left_out_and_the_list_is_as_long_as_wanted():
    rows = Rows(9, {1, 3, 4})
    assert rows.listed(3) == [2, 5, 6]
    assert rows.listed(9) == [2, 5, 6, 7, 8, 9]
    assert rows.listed(2, offset=4) == [5, 6]
    assert Rows(4, {1, 2, 3, 4}).listed(3) == []


def test_without_broken_ones_a_list_is_read_once():
    for limit in (0, 3, 9, 20, sys.maxsize):
        rows = Rows(9)
        assert rows.listed(limit) == list(range(1, 10))[:limit]
        assert rows.reads == [limit]


def test_a_list_of_many_broken_ones_is_read_a_few_times_and_each_is_logged_once(caplog):
    rows = Rows(10_005, range(1, 10_001))
    assert rows.listed(3) == [10_001, 10_002, 10_003]
    assert len(rows.reads) < 14
    assert sum(rows.reads) < 50_000
    assert len(caplog.records) == 10_000
