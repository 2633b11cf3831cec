"""What duplicates and idempotency keys promise, raised digits included."""

# ruff: noqa: RUF001 - characters that look like others are the point

import unicodedata

import pytest

from mnemic._core import fingerprint_digests
from mnemic.errors import DuplicateEntryError
from mnemic.model import MemoryStatus
from mnemic.store import row_codec
from tests.store.contract import AGENT, added, changed, one, paged, state_of
from tests.support.clock import HOUR, MICROSECOND, NOON
from tests.support.entries import numbered, uid


@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_a_text_that_the_user_has_is_not_stored_again(store, rule):
    added(store, "a", [numbered(1, content="Likes  TEA")])
    stored = added(store, "a", [numbered(2, content="likes tea"), numbered(3)], on_duplicate=rule)
    assert (stored.ids, stored.is_new) == ([uid(1), uid(3)], [False, True])
    assert paged(store) == [1, 3]


def test_a_text_is_stored_again_unless_told_otherwise(store):
    added(store, "a", [numbered(1, content="tea")])
    assert added(store, "a", [numbered(2, content="tea")]).is_new == [True]


@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_a_text_of_another_user_or_agent_is_no_duplicate(store, rule):
    owners = [("a", None), ("a", "alice"), ("a", "bob"), ("b", None), ("b", "alice")]
    for at, (agent, user) in enumerate(owners):
        made = numbered(at, agent_id=agent, user_id=user, content="tea")
        assert added(store, agent, [made], on_duplicate=rule).is_new == [True]


@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_what_is_not_found_is_no_duplicate(store, rule):
    states = [
        {"forgotten_at": NOON},
        {"expires_at": NOON},
        {"status": MemoryStatus.ARCHIVED},
        {"status": MemoryStatus.SUPERSEDED},
    ]
    added(store, "a", [numbered(at, content="tea", **state) for at, state in enumerate(states)])
    assert added(store, "a", [numbered(9, content="tea")], on_duplicate=rule).is_new == [True]


def test_an_entry_is_a_duplicate_until_the_moment_it_expires(store):
    added(store, "a", [numbered(1, content="tea", expires_at=NOON)])
    again = [numbered(2, content="tea")]
    assert added(store, "a", again, now=NOON - MICROSECOND, on_duplicate="skip").is_new == [False]
    assert added(store, "a", again, now=NOON, on_duplicate="skip").is_new == [True]


@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_of_several_duplicates_the_oldest_is_taken(store, rule):
    times = {1: NOON, 2: NOON - HOUR, 3: NOON + HOUR}
    for at, time in times.items():
        added(store, "a", [numbered(at, content="tea", created_at=time)])
    assert added(store, "a", [numbered(9, content="tea")], on_duplicate=rule).ids == [uid(2)]


def test_duplicates_within_one_call_are_found(store):
    batch = [
        numbered(1, content="tea", tags=["a"]),
        numbered(2, content="TEA", tags=["b"]),
        numbered(3),
    ]
    stored = added(store, "a", batch, on_duplicate="merge")
    assert (stored.ids, stored.is_new) == ([uid(1), uid(1), uid(3)], [True, False, True])
    assert one(store, AGENT, 1).tags == ("a", "b")


def test_merging_joins_tags_metadata_and_importance_and_changes_nothing_else(store):
    old = numbered(1, content="Tea", tags=["a", "b"], metadata={"x": 1, "y": 1}, importance=0.7)
    added(store, "a", [old])
    new = numbered(
        2, content="tea", tags=["b", "c"], metadata={"y": 2}, importance=0.2, role="user"
    )
    added(store, "a", [new], now=NOON + HOUR, on_duplicate="merge")
    merged = one(store, AGENT, 1)
    assert (merged.tags, merged.metadata) == (("a", "b", "c"), {"x": 1, "y": 2})
    assert (merged.content, merged.importance, merged.role) == ("Tea", 0.7, None)
    assert (merged.created_at, merged.updated_at) == (NOON, NOON + HOUR)


def test_merging_keeps_the_greater_importance(store):
    added(store, "a", [numbered(1, content="tea", importance=0.2)])
    again = numbered(2, content="tea", importance=0.9)
    added(store, "a", [again], on_duplicate="merge")
    assert one(store, AGENT, 1).importance == 0.9


def test_merging_or_skipping_what_brings_nothing_new_changes_nothing(store):
    added(store, "a", [numbered(1, content="tea", tags=["a"])])
    before = state_of(store)
    less = numbered(2, content="tea", importance=0.1)
    added(store, "a", [less], now=NOON + HOUR, on_duplicate="merge")
    more = numbered(2, content="tea", tags=["b"])
    added(store, "a", [more], now=NOON + HOUR, on_duplicate="skip")
    assert state_of(store) == before


def test_after_an_update_a_text_is_no_longer_what_it_was(store):
    added(store, "a", [numbered(1, content="tea")])
    changed(store, 1, content="coffee")
    assert added(store, "a", [numbered(2, content="tea")], on_duplicate="skip").is_new == [True]
    assert added(store, "a", [numbered(3, content="Coffee")], on_duplicate="skip").ids == [uid(1)]


RAISED, PLAIN = "We have 10⁵ users", "We have 105 users"
PAIRS = [
    (RAISED, PLAIN),
    ("The chip has 2¹⁰ cells", "The chip has 210 cells"),
    ("It takes 1½ hours", "It takes 11⁄2 hours"),
    ("Step 1① comes", "Step 11 comes"),
]


def nfkc(text):
    return unicodedata.normalize("NFKC", text)


def by_earlier_version(monkeypatch, act):
    """Act while contents have the fingerprints of version 1, those of their NFKC."""
    with monkeypatch.context() as patched:
        patched.setattr(
            row_codec,
            "fingerprint_digests",
            lambda texts: fingerprint_digests([nfkc(text) for text in texts]),
        )
        return act()


@pytest.mark.requirement("C215", "R292")
@pytest.mark.parametrize("rule", ["skip", "merge"])
@pytest.mark.parametrize("pair", PAIRS)
def test_texts_whose_digits_are_raised_are_no_duplicates_of_others(store, rule, pair):
    added(store, "a", [numbered(1, content=pair[0])])
    stored = added(store, "a", [numbered(2, content=pair[1])], on_duplicate=rule)
    assert (stored.ids, stored.is_new) == ([uid(2)], [True])
    for number, text in enumerate(pair, 1):
        again = [numbered(9, content=text)]
        assert added(store, "a", again, on_duplicate=rule).ids == [uid(number)]
    wide = pair[0].replace("We", "Ｗｅ")
    assert added(store, "a", [numbered(9, content=wide)], on_duplicate=rule).ids == [uid(1)]


@pytest.mark.requirement("C215")
@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_rows_of_an_earlier_version_are_duplicates_of_their_own_texts_alone(
    store, monkeypatch, rule
):
    old = [numbered(at, content=RAISED) for at in range(1, 21)]
    by_earlier_version(monkeypatch, lambda: added(store, "a", old))
    assert added(store, "a", [numbered(31, content=PLAIN)], on_duplicate=rule).is_new == [True]
    for number, text in [(1, RAISED), (31, PLAIN)]:
        again = [numbered(32, content=text, tags=["more"])]
        assert added(store, "a", again, on_duplicate=rule).ids == [uid(number)]
    assert paged(store) == [*range(1, 21), 31]


@pytest.mark.requirement("C215")
@pytest.mark.beyond_a_dict("it has no earlier version")
def test_a_key_of_an_earlier_version_belongs_to_its_own_text(store, monkeypatch):
    old = [numbered(1, content=RAISED), numbered(2, content=PLAIN), numbered(3, content="H₂O")]
    by_earlier_version(monkeypatch, lambda: added(store, "a", old, ["one", "two", "three"]))
    changed(store, 2, content="another text")
    for key, text, number in [("one", RAISED, 1), ("two", PLAIN, 2), ("three", "H₂O", 3)]:
        assert added(store, "a", [numbered(9, content=text)], [key]).ids == [uid(number)]
    for key, text in [("one", PLAIN), ("three", "H2O")]:
        with pytest.raises(DuplicateEntryError, match="used for another content"):
            added(store, "a", [numbered(9, content=text)], [key])
