"""Marks: what holds of an answer goes from the search to every kind of result by the same names."""

from datetime import UTC, datetime

import msgspec
import pytest

from mnemic.context import MemoryContext
from mnemic.model import MemoryRecallResult, MemoryRetrievalResult, SearchResults
from mnemic.model.marks import SHOWN, UNMARKED, Marks
from mnemic.policy.payload import RetrievalMetadata

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ALL = Marks(True, "no network", True, True, NOON, "no user", "database")  # noqa: FBT003
KINDS = {
    SearchResults: set(Marks._fields),
    MemoryRetrievalResult: set(SHOWN),
    MemoryRecallResult: {"partial", "approximate", "stale_since", "hint"},
    RetrievalMetadata: set(SHOWN) - {"hint"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_has_its_marks_by_the_names_and_the_defaults_of_the_record(kind):
    assert set(ALL.of(kind)) == KINDS[kind]
    defaults = {field.name: field.default for field in msgspec.structs.fields(kind)}
    assert {name: defaults[name] for name in KINDS[kind]} == {
        name: getattr(UNMARKED, name) for name in KINDS[kind]
    }


def test_a_result_without_marks_is_made_with_none_and_reads_as_unmarked():
    assert UNMARKED.of(SearchResults) == {}
    assert Marks.read(SearchResults(())) == UNMARKED
    assert Marks.read(SearchResults((), **ALL.of(SearchResults))) == ALL


def test_united_marks_are_those_of_both_and_the_first_ones_text_and_time():
    later = Marks(stale_since=NOON.replace(hour=13), approximate=True, degraded_reason="refused")
    assert Marks(stale_since=NOON).united(later) == Marks(
        approximate=True, stale_since=NOON, degraded_reason="refused"
    )
    assert UNMARKED.united(later) == later
    assert ALL.united(later) == ALL


@pytest.mark.parametrize(
    ("marks", "lasts"),
    [
        (UNMARKED, True),
        (Marks(approximate=True, hint="no user", searched_in="database"), True),
        (Marks(degraded=True), False),
        (Marks(partial=True), False),
        (Marks(stale_since=NOON), False),
    ],
)
def test_only_what_another_search_would_find_again_lasts(marks, lasts):
    assert marks.is_lasting is lasts


def test_a_context_takes_the_shown_marks_and_names_no_other():
    given = {name: getattr(ALL, name) for name in SHOWN}
    text = MemoryContext("tea", **given)
    assert {name: getattr(text, name) for name in SHOWN} == given
    assert not hasattr(text, "searched_in")
    with pytest.raises(TypeError, match="approximated"):
        MemoryContext("tea", approximated=True)
