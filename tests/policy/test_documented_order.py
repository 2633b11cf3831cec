"""Deduplication and interleaving keep the documented tests and the rulings about them."""

# ruff: noqa: RUF001 - texts in many scripts are the point

import hashlib

import pytest

from mnemic.context.interleaving import interleave
from mnemic.context.packing import deduplicate
from mnemic.errors import InvalidArgumentError
from mnemic.model import fingerprint, fingerprint_digests
from tests.support.clock import NOON
from tests.support.policy_twin import ids, made


@pytest.mark.requirement("R291", "R321")
def test_deduplication_removes_exact_matches():
    texts = ["Hello world", "Hello world", "HELLO WORLD"]
    kept = deduplicate([made(number, text) for number, text in enumerate(texts)])
    assert len(kept) == 1


@pytest.mark.requirement("R292", "C030")
@pytest.mark.parametrize(
    "texts",
    [
        ["你好，世界。", "Привет, мир", "مرحبا"],
        ["C++", "C#", "C"],
        ["café", "caf"],
        ["$5", "-5", "5", "50%", "50"],
        ["!!!", "???", "…"],
        ["नमस्ते", "สวัสดี", "שלום", "გამარჯობა"],
    ],
)
def test_different_texts_of_any_script_are_no_duplicates(texts):
    memories = [made(number, text) for number, text in enumerate(texts)]
    assert deduplicate(memories) == memories


@pytest.mark.requirement("R292", "C030", "C031")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("𝐀pple", "Apple"),
        ("It is 20 ℃", "It is 20 °c"),
        ("Mnemic™", "mnemictm"),
        ("“你好，世界。”", "你好,世界"),
        ("(Привет, мир!)", "  привет,\n мир"),
        ("مرحبا؟", "مرحبا"),
        ("नमस्ते।", "नमस्ते"),
        ("STRASSE", "straße"),
        ("ﬁne", "FINE"),
        ("a\u00a0\u3000b", "A b"),
    ],
)
def test_equal_texts_are_duplicates_however_they_are_written(first, second):
    assert len(deduplicate([made(1, first), made(2, second)])) == 1


@pytest.mark.requirement("C032")
def test_the_whole_digest_is_compared_and_sixteen_characters_are_shown():
    (digest,) = fingerprint_digests(["Hello world"])
    assert digest == hashlib.sha256(b"hello world").digest()
    assert fingerprint("Hello world") == digest.hex()[:16]


@pytest.mark.requirement("C034")
def test_the_best_of_equal_texts_stays_and_names_the_others():
    memories = [
        made(1, "Tea", score=0.4, minutes=9),
        made(2, "tea.", score=0.8, minutes=1),
        made(3, "Coffee", score=0.1),
        made(4, "TEA", score=0.8, minutes=5),
        made(5, "tea!", score=0.8, minutes=5),
    ]
    kept = deduplicate(memories)
    assert ids(kept) == ["0003", "0004"]
    assert kept[1].provenance.duplicate_ids == ("0005", "0002", "0001")
    assert kept[0].provenance.duplicate_ids == ()


@pytest.mark.requirement("C035")
def test_paraphrases_are_duplicates_only_behind_the_setting():
    long = "the user keeps a small red notebook in the left pocket of the green rain coat"
    memories = [made(1, long, score=0.9), made(2, long.replace("notebook", "notebook,"), score=0.8)]
    other = made(3, "the ferry to the island leaves every morning at seven", score=0.7)
    assert len(deduplicate([*memories, other])) == 3
    near = deduplicate([*memories, other], near=0.9)
    assert ids(near) == ["0001", "0003"]
    assert near[0].provenance.duplicate_ids == ("0002",)


@pytest.mark.requirement("C045")
def test_texts_that_redaction_made_equal_are_compared_by_their_originals():
    memories = [made(1, "Mail [REDACTED]"), made(2, "Mail [REDACTED]")]
    originals = ["Mail ann@example.com", "Mail bob@example.com"]
    assert len(deduplicate(memories)) == 1
    assert deduplicate(memories, contents=originals) == memories
    assert len(deduplicate(memories, contents=[originals[0]] * 2)) == 1


@pytest.mark.requirement("R325")
def test_duplicates_are_found_across_sessions():
    memories = [
        made(1, "Likes tea", session_id="monday", score=0.6),
        made(2, "likes tea!", session_id="tuesday", score=0.7),
    ]
    (kept,) = deduplicate(memories)
    assert (kept.session_id, kept.provenance.duplicate_ids) == ("tuesday", ("0001",))


@pytest.mark.requirement("R293", "R323")
def test_interleaving_alternates_score_and_recency():
    memories = [made(number, score=number / 10, minutes=-number) for number in range(10)]
    found = interleave(memories, 8)
    assert found[0].score > 0.8
    assert found[1].timestamp == NOON
    assert ids(found) == [f"{number:04}" for number in (9, 0, 8, 1, 7, 2, 6, 3)]


@pytest.mark.requirement("C033")
def test_the_newest_of_all_candidates_takes_part():
    memories = [made(n, f"fact {n}", score=1 - n / 10, minutes=-n) for n in range(5)]
    newest = made(5, "the newest", score=0.1, minutes=1)
    assert ids(interleave(deduplicate([*memories, newest]), 3)) == ["0000", "0005", "0001"]


@pytest.mark.requirement("R289", "C038")
@pytest.mark.parametrize(
    ("strategy", "ratio", "limit", "found"),
    [
        ("score_first", None, 3, (0, 1, 2)),
        ("recency_first", None, 3, (9, 8, 7)),
        ("score_first", 0.7, 8, (0, 1, 2, 3, 4, 5, 9, 8)),
        ("recency_first", 0.7, 8, (9, 8, 7, 6, 5, 4, 0, 1)),
        ("score_first", 0.5, 3, (0, 1, 9)),
        ("recency_first", 0.5, 3, (9, 8, 0)),
        ("score_first", 0.0, 2, (9, 8)),
        ("recency_first", 1.0, 2, (9, 8)),
        ("score_first", 0.1, 4, (9, 8, 7, 6)),
        ("alternate", 0.5, 4, (0, 9, 1, 8)),
    ],
)
def test_a_ratio_is_the_share_of_seats_of_the_primary_list(strategy, ratio, limit, found):
    memories = [made(number, score=1 - number / 10, minutes=number) for number in range(10)]
    order = ids(interleave(memories, limit, strategy=strategy, ratio=ratio))
    assert order == [f"{number:04}" for number in found]


@pytest.mark.requirement("C038")
@pytest.mark.parametrize(
    "options",
    [
        {"ratio": 0.7},
        {"strategy": "score_first", "ratio": 1.1},
        {"strategy": "score_first", "ratio": -0.1},
        {"strategy": "score_first", "ratio": float("nan")},
        {"strategy": "newest"},
    ],
)
def test_a_ratio_or_strategy_without_meaning_is_refused(options):
    with pytest.raises(InvalidArgumentError):
        interleave([made(1)], 3, **options)


@pytest.mark.requirement("C039")
def test_ties_are_broken_by_time_and_then_by_id_whatever_the_order_of_the_input():
    memories = [made(3), made(1), made(2), made(4, minutes=1), made(5, score=0.6)]
    wanted = ["0005", "0004", "0001", "0002", "0003"]
    assert ids(interleave(memories, 9)) == wanted
    assert ids(interleave(memories[::-1], 9)) == wanted


@pytest.mark.requirement("C037")
def test_the_place_of_each_memory_is_recorded():
    found = interleave([made(1), made(2), made(3)], 2)
    assert [memory.provenance.position for memory in found] == [0, 1]
