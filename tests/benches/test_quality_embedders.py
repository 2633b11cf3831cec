"""Other embedders than the default one: their cosines, and the cells of the table."""

import numpy as np
import pytest

from benches.quality import embedders
from benches.quality.datasets import Collection, Dataset, Memory, Question
from tests.support.embedders import WordEmbedder

TEXTS = ["The gate code is 4711", "Which code opens the gate?", "Tea at noon"]


@pytest.fixture(autouse=True)
def words(monkeypatch):
    embedder = WordEmbedder(64)
    monkeypatch.setattr(embedders, "minilm", lambda: embedder)
    return embedder


@pytest.mark.parametrize(("mean", "share"), [(0.7, 0.2), (0.75, 0.15)])
def test_cosines_of_a_copy_are_a_share_of_the_own_ones_above_a_mean(words, mean, share):
    own, copied = embedders.unit(words.embed(TEXTS)), embedders.squeezed(mean, share)(TEXTS)
    assert np.linalg.norm(copied, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        cosine = own[one] @ own[other]
        assert copied[one] @ copied[other] == pytest.approx(mean + share * cosine, abs=0.03)


def test_a_cell_has_recall_gain_and_what_is_refused():
    memories = [Memory(id=str(at), content=text) for at, text in enumerate(TEXTS)]
    question = Question(id="q", text="What is the gate code?", kind="k", grades={"0": 1})
    collection = Collection(name="one", memories=memories, questions=[question])
    dataset = Dataset(name="set", sha256="", relevant_from=1, collections=[collection])
    assert embedders.measured(dataset, WordEmbedder(64), None).startswith("100.0 / 100.0, 0.0, ")


def test_static_vectors_are_left_out_with_a_line_where_they_are_not_installed(monkeypatch, capsys):
    monkeypatch.setattr(embedders, "find_spec", lambda _: None)
    assert embedders.TOKENS not in embedders.embedders()
    assert "pip install wordllama" in capsys.readouterr().out
