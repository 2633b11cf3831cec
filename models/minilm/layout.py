"""The file of weights that mnemic's encoder maps, for any BERT encoder with heads of 32.

`rust/embed/src/format.rs` reads it: 8 bytes `MNEMBERT`, version and sizes as 32-bit numbers, zeros
up to byte 96, the SHA-256 of all other bytes, then the arrays, each from a multiple of 64 bytes on:
the table of words, the positions, and those of `arrays`. All numbers are little-endian. With a
projection, the last of them, the mean of a text's tokens is made unit length, multiplied by it, and
made unit length again.

Each matrix is rounded here to 8 signed bits, one scale an output channel; activations are rounded
at run time to 8 bits, each token by itself over its own range. Dividing a feature's range between
activation and weight (SmoothQuant, Xiao et al. 2022, arXiv 2211.10438) gains nothing then.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from reference import HEADS, layers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

MAGIC = b"MNEMBERT"
VERSION = 1
FIELDS = struct.Struct("<8s9I52x")  # magic, version, sizes; the hash of all other bytes follows
LINE = 64
PAIR, INPUTS = 32, 4  # output channels and inputs whose weights lie together, in two cache lines
MAXIMUM = np.float32(127)


def check_hash(name: str, content: bytes, expected: str) -> None:
    """Stop if `content` differs from the published file."""
    if sha256(content) != expected:
        sys.exit(f"{name}: sha256 {sha256(content)}, expected {expected}")


def sha256(content: bytes) -> str:
    """Return the hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def file_with(
    words: Sequence[NDArray[np.generic]],
    word_bits: int,
    weights: Mapping[str, Array],
    positions: int,
) -> bytes:
    """Return a whole file with codes and scales of a table of words, the bits of a code in it."""
    table, inner = weights["embeddings.position_embeddings.weight"], "intermediate.dense.bias"
    inner_size, layers = len(weights[f"encoder.layer.0.{inner}"]), layers_of(weights)
    sizes = (table.shape[1], HEADS, layers, inner_size, len(words[0]), positions, word_bits)
    fields = FIELDS.pack(MAGIC, VERSION, *sizes, "projection.weight" in weights)
    embedded = table[:positions] + weights["embeddings.token_type_embeddings.weight"][0]
    body = b"".join(padded(array) for array in (*words, embedded, *arrays(weights)))
    return fields + hashlib.sha256(fields + body).digest() + body


def padded(array: NDArray[np.generic]) -> bytes:
    """Return the bytes of an array, up to the next cache line."""
    content = array.tobytes()
    return content + bytes(-len(content) % LINE)


def arrays(weights: Mapping[str, Array]) -> Iterator[NDArray[np.generic]]:
    """Yield what follows the positions, in the order in which the encoder lays it out."""
    yield from norm(weights, "embeddings.LayerNorm")
    for number in range(layers_of(weights)):
        name = f"encoder.layer.{number}"
        yield from attention(weights, f"{name}.attention.self")
        yield from dense(weights, f"{name}.attention.output.dense")
        yield from norm(weights, f"{name}.attention.output.LayerNorm")
        yield from dense(weights, f"{name}.intermediate.dense")
        yield from dense(weights, f"{name}.output.dense")
        yield from norm(weights, f"{name}.output.LayerNorm")
    if "projection.weight" in weights:
        yield from dense(weights, "projection")


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
