"""The labelled benchmark and the example conversation keep the promises made for them."""

import re
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from benches.quality.datasets import LANGUAGES, load_languages, load_own, read_lines
from tests.support.paths import DEMO, ROOT


@pytest.fixture(scope="module")
def turns():
    return read_lines(DEMO / "conversation.jsonl")


def test_the_documented_hash_is_that_of_the_data():
    documented = re.search(
        r"sha256: `([0-9a-f]{64})`",
        (ROOT / "docs" / "project" / "lab" / "quality.md").read_text(encoding="utf-8"),
    )
    assert documented.group(1) == load_own().sha256


def test_the_mixed_store_holds_all_languages_and_the_rest_of_the_set():
    *alone, mixed = load_languages().collections
    assert [one.name for one in alone] == list(LANGUAGES)
    assert len({memory.id for memory in mixed.memories}) == len(mixed.memories) == 397 + 5 * 60
    assert len({question.id for question in mixed.questions}) == 5 * 50
    assert {name for one in mixed.questions for name in one.grades} <= {
        memory.id for memory in mixed.memories
    }


def test_the_documented_hash_of_the_parallel_part_is_that_of_the_data():
    text = (ROOT / "docs" / "project" / "lab" / "quality.md").read_text(encoding="utf-8")
    assert load_languages().sha256 in text


def test_the_conversation_spans_sessions_and_months(turns):
    assert len(turns) >= 150
    assert 10 <= len({turn["session_id"] for turn in turns}) <= 14
    times = [datetime.fromisoformat(turn["created_at"]) for turn in turns]
    assert (max(times) - min(times)).days > 180
    assert all(time.tzinfo == UTC for time in times)


def test_turns_are_in_order_of_time_and_positions_count_within_a_session(turns):
    for before, after in pairwise(turns):
        assert before["created_at"] < after["created_at"]
        same = before["session_id"] == after["session_id"]
        assert after["position"] == (before["position"] + 1 if same else 0)


def test_the_two_speakers_take_turns(turns):
    assert {(turn["role"], turn["speaker"]) for turn in turns} == {
        ("user", "Elin"),
        ("assistant", "Assistant"),
    }
    for before, after in pairwise(turns):
        if before["session_id"] == after["session_id"]:
            assert before["role"] != after["role"]


def test_the_evidence_of_the_example_questions_exists(turns):
    places = {(turn["session_id"], turn["position"]) for turn in turns}
    questions = read_lines(DEMO / "questions.jsonl")
    assert len(questions) >= 12
    for question in questions:
        assert question["evidence"]
        assert {tuple(place) for place in question["evidence"]} <= places
