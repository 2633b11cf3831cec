"""Deduplication and interleaving keep the documented tests and the rulings about them."""

import hashlib

import pytest

from mnemic.context.interleaving import interleave
from mnemic.context.packing import deduplicate
from mnemic.model import fingerprint, fingerprint_digests
from tests.support.clock import NOON
from tests.support.policy_twin import ids, made


@pytest.mark.requirement("R291", "R321")
def test_deduplication_removes_exact_matches():
    texts = ["Hello world", "Hello world", "HELLO WORLD"]
    kept = deduplicate([made(number, text) for number, text in enumerate(texts)])
    assert len(kept) == 1


@pytest.mark.requirement("C032")
def test_the_whole_digest_is_compared_and_sixteen_characters_are_shown():
    (digest,) = fingerprint_digests(["Hello world"])
    assert digest == hashlib.sha256(b"hello world").digest()
    assert fingerprint("Hello world") == digest.hex()[:16]


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


@pytest.mark.requirement("C037")
def test_the_place_of_each_memory_is_recorded():
    found = interleave([made(1), made(2), made(3)], 2)
    assert [memory.provenance.position for memory in found] == [0, 1]
