"""Raised digits are kept apart in every store, also beside what an earlier version stored."""

# ruff: noqa: RUF001 - characters that look like others are the point

import unicodedata

import pytest

from mnemic._core import fingerprint_digests
from mnemic.errors import DuplicateEntryError
from mnemic.store import row_codec
from tests.store.contract import added, changed, paged
from tests.support.entries import numbered, uid

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
