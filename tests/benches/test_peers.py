"""The comparison with other memories selects, fuses, counts and reports as it says."""

import re
import shutil
from datetime import UTC, datetime

import numpy as np
import pytest

from benches.peers import measure, report, samples
from benches.peers.adapters import ADAPTERS, pip_line
from benches.peers.adapters.grep import Grep
from benches.peers.base import KEYWORD, SEMANTIC, Query, Row
from benches.peers.vectors import StoredVectors


class Counting:
    """An embedder that counts what it embeds: the length of a text, twice."""

    model, dimensions, max_tokens, similarity_floor = "counting", 2, 16, 0.1
    languages = score_floors = None

    def __init__(self):
        self.texts = []

    def embed(self, texts):
        self.texts += texts
        return np.array([[len(text), len(text)] for text in texts], np.float32)


def row(at, vector, topic="rest", user="ada"):
    return Row(f"m{at}", f"text {at}", vector, user, topic, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("count", [20, 1_000, 5_000])
def test_topics_have_their_shares_of_the_rows_and_at_least_one(count):
    labels = samples.topics(count)
    assert len(labels) == count
    assert labels.count("rare") == max(1, count // 1_000)
    assert labels.count("few") == max(1, count // 100)
    assert labels.count("some") == count // 10
    assert labels == samples.topics(count)
    assert labels != samples.topics(count, seed=1)


def test_texts_past_the_sentences_are_pairs_of_them_and_all_differ():
    sentences = [f"sentence {number}" for number in range(300)]
    texts = samples.texts_of(sentences, 1_000)
    assert texts[:300] == sentences
    assert texts[300].split(" sentence ") == ["sentence 0", "119"]
    assert len(set(texts)) == 1_000


def test_a_query_may_bring_back_the_rows_of_its_user_and_topic():
    vector = np.ones(2, np.float32)
    rows = [row(0, vector), row(1, vector, "few"), row(2, vector, "few", user="bo")]
    assert samples.matching(rows, Query("?", vector, "ada", 10)) == [0, 1]
    assert samples.matching(rows, Query("?", vector, "ada", 10, "few")) == [1]


def test_the_nearest_of_a_filter_are_found_by_brute_force():
    rows = [row(at, np.array([at, 1], np.float32), "few" if at % 2 else "rest") for at in range(9)]
    query = Query("?", np.array([1, 0], np.float32), "ada", 10, "few")
    best, matches = measure.nearest(rows, [query])
    assert best == [["m7", "m5", "m3", "m1"]]
    assert matches == {"m1", "m3", "m5", "m7"}


def test_what_a_filter_left_is_a_share_of_what_was_to_be_had():
    right = [["a", "b"], ["b", "a"]], {"a", "b"}
    assert measure.filter_figures([["b", "a"], ["b"]], right, SEMANTIC) == {
        "returned": 0.75,
        "exact": 0.5,
    }
    assert measure.filter_figures([["a"], []], right, KEYWORD) == {"returned": 0.25, "exact": None}


def test_an_answer_outside_the_filter_is_no_answer():
    with pytest.raises(AssertionError, match="outside the filter"):
        measure.filter_figures([["c"]], ([["a"]], {"a"}), SEMANTIC)


@pytest.mark.parametrize("ranking", [["a", "a"], ["a", "b", "c"]])
def test_a_ranking_has_each_id_once_and_no_more_than_asked_for(ranking):
    with pytest.raises(AssertionError, match="an id twice"):
        measure.checked(ranking, 2)


def test_percentiles_are_told_in_milliseconds():
    found = measure.percentiles([at / 1_000 for at in range(101)])
    assert found == pytest.approx({"p50": 50, "p95": 95})


def test_vectors_are_looked_up_and_a_text_not_seen_before_is_embedded_once():
    embedder = Counting()
    given = np.array([[1, 0], [0, 1]], np.float32)
    vectors = StoredVectors(["a", "b"], given, embedder)
    assert np.array_equal(vectors.embed(["b", "a"]), given[::-1])
    assert (vectors.late, embedder.texts) == (0, [])
    for _ in range(2):
        assert vectors.embed(["new", "a"]).tolist() == [[3, 3], [1, 0]]
    assert (vectors.late, embedder.texts) == (1, ["new"])


def test_what_helps_with_a_missing_library_names_it_in_its_version():
    for name in set(ADAPTERS) - {"grep", "mnemic"}:
        line = pip_line(name)
        assert re.fullmatch(r"pip install( [a-z0-9-]+==[0-9.]+)+", line), line
    assert pip_line("mem0").count("==") == 2, "mem0 and its store"


@pytest.mark.skipif(shutil.which("grep") is None, reason="there is no grep")
def test_grep_ranks_by_how_many_words_of_a_query_a_memory_has(tmp_path):
    texts = ["Tea", "The boat, the\nBOATHOUSE", "A green boat", "Rowing boats", "Green boats"]
    rows = [row(at, None)._replace(text=text) for at, text in enumerate(texts)]
    store = Grep(tmp_path, None)
    store.add([*rows[:-1], rows[-1]._replace(user="bo")])
    asked = Query("the Green boat?", None, "ada", 2)
    assert store.search(asked, KEYWORD) == ["m2", "m1"]
    assert store.search(asked._replace(topic="few"), KEYWORD) == []
    assert store.search(asked._replace(text="a?"), KEYWORD) == []


def test_only_all_of_it_is_a_hundred_per_cent():
    shares = [report.percent(share) for share in (None, 1, 0.9999, 0.5, 0)]
    assert shares == ["", "100%", "99.99%", "50%", "0%"]


def test_a_record_becomes_tables():
    systems = {"mnemic hybrid": (0.8, 0.4), "Chroma semantic": (0.6, 12)}
    figure = {"mean": 0.8, "error": 0.01}
    record = {
        "machine": {
            "date": "2026-01-01",
            "processor": "a <fast> one",
            "cores": 2,
            "kernel": "avx2",
            "python": "3.11",
            "versions": {"mnemic": "1"},
        },
        "left_out": ["Left out: areev"],
        "quality": {
            name: {
                "memories": 7,
                "questions": 3,
                "systems": {
                    label: {"R@10": figure | {"mean": recall}}
                    for label, (recall, _) in systems.items()
                },
            }
            for name in ("own", "others")
        },
        "latency": [
            {
                "rows": 5_000,
                "users": 10,
                "systems": {
                    label: {"p50": ms, "p95": 2 * ms} for label, (_, ms) in systems.items()
                },
            }
        ],
        "filters": {
            "rows": 5_000,
            "systems": {
                label: {topic: {"returned": 0.5, "exact": None} for topic in samples.TOPICS}
                for label in systems
            },
        },
    }
    text = report.render(record)
    assert "Left out: areev" in text
    assert "| mnemic hybrid | 0.800 ± 0.010 |" in text
    assert "| Chroma semantic | 12.00 | 24.00 |" in text
    assert "| mnemic hybrid | 50% |  | 50% |  | 50% |  |" in text
