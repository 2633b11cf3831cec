"""Fingerprints and embeddings of real sentences."""

import numpy as np
import pytest

from benches.datasets import real_embeddings, real_texts
from benches.fingerprint import straightforward_digests, straightforward_fingerprint
from mnemic import fingerprint, fingerprint_digests
from mnemic.embed import MiniLmEmbedder

TEXTS = real_texts()[:1000]


@pytest.mark.parametrize("system", [fingerprint, straightforward_fingerprint])
def test_a_fingerprint(system, measure):
    assert [system(text) for text in TEXTS] == [fingerprint(text) for text in TEXTS]
    measure("fingerprint of a sentence", system.__name__.replace("_", " "), system, TEXTS)


@pytest.mark.parametrize("system", [fingerprint_digests, straightforward_digests])
def test_digests_of_a_thousand(system, measure):
    assert system(TEXTS) == fingerprint_digests(TEXTS)
    name = system.__name__.replace("_", " ")
    measure("digest of a sentence in a thousand", name, system, [TEXTS], per_call=len(TEXTS))


def test_an_embedding(measure):
    embedder = MiniLmEmbedder()
    expected = real_embeddings()[0][:8]
    assert np.array_equal(embedder.embed(TEXTS[:8]), expected)
    one_by_one = [[text] for text in TEXTS]
    measure("embedding of a sentence", "MiniLmEmbedder", embedder.embed, one_by_one)
