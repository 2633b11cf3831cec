"""A BERT encoder, such as all-MiniLM-L6-v2, in plain numpy, straight from published weights.

It shares no code with the encoder, so that each can be checked against the other.
BERT as in Devlin et al. 2018 (arXiv 1810.04805); mean pooling and unit length as in the
model's own pipeline (Reimers and Gurevych 2019, arXiv 1908.10084).
"""

from __future__ import annotations

from math import erf, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

HEADS = 12
LAYER_NORM_EPSILON = 1e-12

_erf = np.vectorize(erf, otypes=[np.float64])


def layers_of(weights: Mapping[str, object]) -> int:
    """Return the number of layers of a model."""
    return sum(name.endswith("output.LayerNorm.weight") for name in weights) // 2


class ReferenceModel:
    """The float model, computed in float64.

    Args:
        weights: The tensors of `model.safetensors`, by their names there.
    """

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        self._weights = {name: array.astype(np.float64) for name, array in weights.items()}

    def sentence_embedding(self, token_ids: Sequence[int]) -> Array:
        """Return the unit-length mean of the token embeddings, projected if so, shape (384,)."""
        mean = self.token_embeddings(token_ids).mean(axis=0)
        if "projection.weight" in self._weights:
            mean = self._dense(mean / np.linalg.norm(mean), "projection")
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float64)

    def token_embeddings(self, token_ids: Sequence[int]) -> Array:
        """Return the last hidden state, shape (tokens, 384)."""
        hidden = self._embed(np.asarray(token_ids))
        for number in range(layers_of(self._weights)):
            hidden = self._layer(hidden, f"encoder.layer.{number}")
        return hidden

    def _embed(self, token_ids: NDArray[np.int64]) -> Array:
        table = "embeddings.{}_embeddings.weight".format
        words = self._weights[table("word")][token_ids]
        positions = self._weights[table("position")][: len(token_ids)]
        return self._norm(
            words + positions + self._weights[table("token_type")][0], "embeddings.LayerNorm"
        )

    def _layer(self, hidden: Array, name: str) -> Array:
        attended = self._dense(self._attend(hidden, name), f"{name}.attention.output.dense")
        hidden = self._norm(hidden + attended, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._dense(hidden, f"{name}.intermediate.dense"))
        outer = self._dense(inner, f"{name}.output.dense")
        return self._norm(hidden + outer, f"{name}.output.LayerNorm")

    def _attend(self, hidden: Array, name: str) -> Array:
        query, key, value = (
            self._heads(self._dense(hidden, f"{name}.attention.self.{part}"))
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / sqrt(query.shape[2])
        mixed = _softmax(scores) @ value
        return mixed.transpose(1, 0, 2).reshape(hidden.shape)

    @staticmethod
    def _heads(rows: Array) -> Array:
        """Reshape (tokens, 384) to (heads, tokens, 32)."""
        return rows.reshape(len(rows), HEADS, -1).transpose(1, 0, 2)

    def _dense(self, rows: Array, name: str) -> Array:
        return rows @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, rows: Array, name: str) -> Array:
        centred = rows - rows.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(rows: Array) -> Array:
    return np.asarray(rows * 0.5 * (1.0 + _erf(rows / sqrt(2.0))), dtype=np.float64)


def _softmax(scores: Array) -> Array:
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True), dtype=np.float64)
