"""Figures of merit against values worked out by hand, and the path from files to a table."""

import json
import math
from datetime import UTC, datetime

import numpy as np
import pytest

from benches.quality import datasets, measure, metrics, report
from benches.quality.methods.ranking import best_first


def test_recall_is_the_share_of_relevant_ids_found_in_the_first_k():
    assert metrics.recall_at(["a", "x", "b", "y"], {"a", "b", "c"}, 2) == pytest.approx(1 / 3)
    assert metrics.recall_at(["a", "x", "b", "y"], {"a", "b", "c"}, 3) == pytest.approx(2 / 3)
    assert metrics.recall_at([], {"a"}, 5) == 0


def test_recall_without_anything_relevant_is_refused():
    with pytest.raises(ValueError, match="at least one relevant"):
        metrics.recall_at(["a"], set(), 5)


def test_precision_counts_empty_places_as_wrong():
    assert metrics.precision_at(["a", "x", "b"], {"a", "b"}, 3) == pytest.approx(2 / 3)
    assert metrics.precision_at(["a"], {"a", "b"}, 3) == pytest.approx(1 / 3)


def test_ndcg_of_the_ideal_order_is_one():
    assert metrics.ndcg_at(["a", "b", "c"], {"a": 3, "b": 2, "c": 1}, 10) == 1


def test_ndcg_of_a_known_order_equals_the_value_worked_by_hand():
    # Gains 1, 0, 7 at discounts 1, log2 3, 2; ideal 7, 1 at discounts 1, log2 3.
    expected = (1 + 7 / 2) / (7 + 1 / math.log2(3))
    assert metrics.ndcg_at(["old", "x", "new"], {"new": 3, "old": 1}, 10) == pytest.approx(expected)
    assert expected == pytest.approx(0.589705, abs=1e-6)


def test_binary_ndcg_equals_the_value_worked_by_hand():
    # Hits at places 2 and 4; ideal at places 1 and 2.
    expected = (1 / 1.5849625 + 1 / 2.3219281) / (1 + 1 / 1.5849625)
    assert metrics.ndcg_at(["x", "a", "y", "b"], {"a": 1, "b": 1}, 10) == pytest.approx(expected)


def test_ndcg_ignores_what_stands_after_place_k_and_fills_the_ideal_to_k_only():
    assert metrics.ndcg_at(["x", "a"], {"a": 3}, 1) == 0
    assert metrics.ndcg_at(["a"], {"a": 3, "b": 3}, 1) == 1


def test_ndcg_without_a_positive_grade_is_refused():
    with pytest.raises(ValueError, match="positive grade"):
        metrics.ndcg_at(["a"], {"a": 0}, 10)


def test_standard_error_is_the_sample_deviation_over_the_root_of_the_count():
    mean, error = metrics.mean_and_error([0.0, 1.0, 1.0, 0.0])
    assert mean == 0.5
    assert error == pytest.approx(math.sqrt(1 / 3) / 2)


def test_one_value_has_no_standard_error():
    mean, error = metrics.mean_and_error([0.25])
    assert mean == 0.25
    assert math.isnan(error)


def test_ties_in_a_baseline_go_to_the_earlier_row():
    assert best_first(np.array([0.5, 2.0, 0.5, 2.0, -1.0]), 4) == [1, 3, 0, 2]


class Fixed:
    """A method that answers in the order in which it was given the memories."""

    name = "fixed"

    def index(self, memories):
        self.ids = [memory.id for memory in memories]

    def search(self, _question, limit):
        return self.ids[:limit]

    def close(self):
        self.ids = None


class Stutter(Fixed):
    """A method that names one memory twice."""

    def search(self, _question, _limit):
        return [self.ids[0], self.ids[0]]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def conversations(tmp_path):
    turns = [
        {"conv": "c1", "id": "D1:2", "pos": 1, "text": "Tea, please.", "caption": ""},
        {"conv": "c1", "id": "D1:1", "pos": 0, "text": "Look!", "caption": "a red kite"},
        {"conv": "c2", "id": "D1:1", "pos": 0, "text": "Morning.", "caption": ""},
    ]
    common = {"session": 1, "time": "2026-02-03T04:05:06", "speaker": "Ada"}
    questions = [
        {"conv": "c1", "id": "q1", "text": "Kite?", "category": "one", "evidence": ["D1:1"]},
        {"conv": "c1", "id": "q2", "text": "Tea?", "category": "two", "evidence": ["D1:2"]},
        {"conv": "c2", "id": "q1", "text": "When?", "category": "one", "evidence": ["D1:1"]},
    ]
    write_lines(tmp_path / "turns.jsonl", [turn | common for turn in turns])
    write_lines(tmp_path / "questions.jsonl", questions)
    return datasets.load_conversations(tmp_path)


def test_a_turn_is_stored_with_its_speaker_photo_session_and_time_in_order(conversations):
    first, second = conversations.collections[0].memories
    assert first.content == "Ada: Look! [shares a photo: a red kite]"
    assert second.content == "Ada: Tea, please."
    assert (first.session_id, first.position, first.speaker) == ("1", 0, "Ada")
    assert first.created_at == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_each_conversation_is_indexed_alone(conversations):
    outcomes = measure.measure(Fixed(), conversations)
    assert [outcome.figures["R@5"] for outcome in outcomes] == [1, 1, 1]
    by_hand = [1, 1 / math.log2(3), 1]
    assert [outcome.figures["nDCG@10"] for outcome in outcomes] == pytest.approx(by_hand)


def test_limit_keeps_the_first_questions_of_each_conversation(conversations):
    outcomes = measure.measure(Fixed(), conversations, limit=1)
    assert [outcome.collection for outcome in outcomes] == ["c1", "c2"]


def test_a_ranking_that_repeats_an_id_is_refused(conversations):
    with pytest.raises(ValueError, match="no proper ranking"):
        measure.measure(Stutter(), conversations)


def test_relevance_threshold_and_distractors_reach_the_figures():
    question = datasets.Question(
        id="q", text="?", kind="k", grades={"new": 3, "old": 1}, distractors=frozenset({"near"})
    )
    figures = measure.figures_of(["old", "near", "new"], question, relevant_from=2)
    assert figures["R@5"] == 1
    assert figures["P@3"] == pytest.approx(1 / 3)
    assert figures["hit@3"] == 1
    assert figures["distractors@3"] == pytest.approx(1 / 3)


def test_a_relevant_memory_after_the_third_place_is_no_hit_in_the_top_three():
    question = datasets.Question(id="q", text="?", kind="k", grades={"late": 3, "weak": 1})
    figures = measure.figures_of(["weak", "x", "y", "late"], question, relevant_from=2)
    assert figures["hit@3"] == 0
    assert figures["R@5"] == 1


def test_the_table_shows_each_group_and_the_record_each_question(conversations):
    results = {"fixed": measure.measure(Fixed(), conversations)}
    text = report.render(conversations, results)
    assert "one (2) · fixed" in text
    assert "c1 (2) · fixed" in text
    record = report.record(conversations, results)
    assert record["methods"]["fixed"]["category"]["one"]["count"] == 2
    assert set(record["methods"]["fixed"]["questions"]) == {"c1/q1", "c1/q2", "c2/q1"}
