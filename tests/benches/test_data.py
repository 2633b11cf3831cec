"""The benchmarks' data and yardsticks do what their names say; nothing is measured here."""

import numpy as np
import pytest

from benches.support.datasets import mixtures, queries_of, rows_of
from benches.support.exact import best_ids, recall
from benches.support.sentences import is_english, sentences_of


def test_a_paragraph_falls_into_its_sentences():
    paragraph = "Return the first line.  The rest\nis kept as it is. Then >>> spam(1) is left out."
    assert list(sentences_of(paragraph)) == ["Return the first line.", "The rest is kept as it is."]


@pytest.mark.parametrize(
    "text",
    ["Too short.", "x = call(1) is not a sentence.", "no capital and a full stop.", "A List Of"],
)
def test_what_is_no_sentence_is_left_out(text):
    assert not is_english(text)


@pytest.mark.parametrize("kind", ["uniform", "clustered"])
def test_made_up_rows_are_unit_vectors_and_the_same_each_time(kind):
    rows = rows_of(kind, 500, 48)
    assert rows.dtype == np.float32
    assert rows.shape == (500, 48)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    assert np.array_equal(rows, rows_of(kind, 500, 48))
    assert not np.array_equal(rows, rows_of(kind, 500, 48, seed=1))
    assert queries_of(kind, rows, 7).shape == (7, 48)


def test_clustered_rows_have_nearer_neighbours_than_uniform_ones():
    def nearest(kind):
        rows = rows_of(kind, 2_000, 48)
        scores = rows @ rows.T
        np.fill_diagonal(scores, -1)
        return scores.max(axis=1).mean()

    assert nearest("clustered") > nearest("uniform") + 0.1


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="no such kind"):
        rows_of("square", 10, 4)


def test_mixtures_are_unit_vectors_near_the_rows_they_come_from():
    embedded = rows_of("clustered", 300, 48)
    mixed = mixtures(embedded, np.random.default_rng(5))
    np.testing.assert_allclose(np.linalg.norm(mixed, axis=1), 1, rtol=1e-6)
    nearest = (mixed @ embedded.T).max(axis=1)
    assert 0.8 < nearest.mean() < 0.99
    assert nearest.max() < 1 - 1e-4, "a copy of a row would make its search too easy"


def test_brute_force_puts_the_smaller_id_first_among_equals():
    rows = np.array([[0, 1], [1, 0], [1, 0], [-1, 0]], np.float32)
    queries = np.array([[1, 0], [0, 1]], np.float32)
    assert best_ids(rows, queries, k=2).tolist() == [[1, 2], [0, 1]]
    assert best_ids(rows, queries, np.array([3, 2, 0]), k=3).tolist() == [[2, 0, 3], [0, 2, 3]]


def test_recall_is_the_share_of_right_ids_in_any_order():
    right = np.array([[1, 2], [3, 4]])
    assert recall([[2, 1], [3, 9]], right) == 0.75
