"""What an embedder is: texts that are checked, batches, and no base class."""

import numpy as np

from mnemic.embed import Embedder, EmbeddingBatch
from mnemic.embed.base import checked_texts


def test_checked_texts_returns_a_list():
    assert checked_texts(text for text in ("a", "ü")) == ["a", "ü"]


def test_an_embedder_of_ones_own_needs_no_base_class():
    class Constant:
        model, dimensions = "constant", 4

        def embed(self, texts, /):
            return np.tile(np.float32([1, 0, 0, 0]), (len(texts), 1))

    assert isinstance(Constant(), Embedder)
    assert not isinstance(object(), Embedder)


def test_a_batch_counts_its_truncated_texts():
    batch = EmbeddingBatch(np.eye(3, dtype=np.float32), np.array([True, False, True]))
    assert batch.truncated_count == 2
