"""Results of writes carry what was deleted to make space, and are otherwise what they were."""

import copy
import pickle

import pytest

from mnemic.model import AddedMemories, CheckedEntry, UpdateResult, WrittenEntry
from mnemic.model.results import written
from tests.support.entries import numbered, uid

GONE = (uid(7), uid(8))
COPIES = [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))]  # noqa: S301 - our own


def test_an_entry_for_which_nothing_went_is_itself():
    entry = numbered(1)
    assert written(entry, []) is entry
    assert entry.evicted == ()


def test_an_entry_for_which_others_went_is_equal_to_the_stored_one():
    entry = numbered(1, tags=["t"], sensitive=True)
    result = written(entry, GONE)
    assert isinstance(result, WrittenEntry)
    assert result == entry
    assert hash(result) == hash(entry)
    assert result.evicted == GONE
    assert result.to_dict()["evicted_ids"] == [str(one) for one in GONE]
    assert "memory 1" not in repr(result)


def test_a_checked_entry_keeps_what_went():
    checked = CheckedEntry.of(written(numbered(1), GONE), ())
    assert (checked.evicted, checked.contradictions) == (GONE, ())
    assert CheckedEntry.of(numbered(1), ()).evicted == ()


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize(
    "result",
    [written(numbered(1), GONE), AddedMemories([numbered(1)], GONE), UpdateResult(3, evicted=GONE)],
    ids=["entry", "list", "number"],
)
def test_copies_and_pickles_keep_what_went(result, copied):
    assert copied(result) == result
    assert copied(result).evicted == GONE


def test_a_list_and_a_number_are_what_they_were():
    assert AddedMemories([numbered(1)]) == [numbered(1)]
    assert UpdateResult(3, evicted=GONE) + 1 == 4
    assert repr(UpdateResult(3, evicted=GONE)) == "UpdateResult(3, evicted=2)"
    assert (AddedMemories().evicted, UpdateResult(0).evicted) == ((), ())
