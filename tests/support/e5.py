"""A package like mnemic-e5 with a small model of random weights."""

import importlib
import importlib.util
import sys
from functools import cache

import numpy as np

from tests.support.paths import ROOT

E5, MINILM = ROOT / "models" / "e5", ROOT / "models" / "minilm"
HIDDEN, INNER, LAYERS, POSITIONS, BLOCK = 384, 96, 1, 64, 32
FIRST, LAST, UNKNOWN = 0, 2, 3
WORDS = [
    *("query", "passage", ":", "moved", "to", "oslo", "bergen", "anna", "dog", "rent", "tea"),
    *("in", "may", "a", "b", "c", ".", "?"),
]
PIECES = {f"▁{word}": -3.0 - len(word) / 8 for word in WORDS} | {
    letter: -7.0 - at / 16 for at, letter in enumerate("▁abcdefghijklmnopqrstuvwxyz:.?é中文")
}
"""Pieces of a small model, with their scores."""

FRAME = ("<s>", "<pad>", "</s>", "<unk>")


@cache
def builder():
    """Return the module that builds the files of the real model."""
    path = list(sys.path)
    sys.path[:0] = [str(E5), str(MINILM)]
    spec = importlib.util.spec_from_file_location("build_e5", E5 / "build_model.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
        sys.modules.pop("mnemic_e5", None)
    return module


def source_of(pieces):
    """Return a model whose words are pieces, each with its score."""
    chance = np.random.default_rng(7)

    def numbers(*shape):
        return (0.1 * chance.standard_normal(shape)).astype(np.float32)

    embeddings = {
        "position_embeddings.weight": numbers(POSITIONS, HIDDEN),
        "token_type_embeddings.weight": numbers(2, HIDDEN),
    }
    weights = {f"embeddings.{name}": values for name, values in embeddings.items()}
    for norm in ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"):
        weights[f"{norm}.LayerNorm.weight"] = 1 + numbers(HIDDEN)
        weights[f"{norm}.LayerNorm.bias"] = numbers(HIDDEN)
    sizes = {
        **{f"attention.self.{part}": (HIDDEN, HIDDEN) for part in ("query", "key", "value")},
        "attention.output.dense": (HIDDEN, HIDDEN),
        "intermediate.dense": (INNER, HIDDEN),
        "output.dense": (HIDDEN, INNER),
    }
    for name, size in sizes.items():
        weights[f"encoder.layer.0.{name}.weight"] = numbers(*size)
        weights[f"encoder.layer.0.{name}.bias"] = numbers(size[0])
    weights["projection.weight"] = numbers(HIDDEN, HIDDEN)
    weights["projection.bias"] = np.zeros(HIDDEN, np.float32)
    texts = [*FRAME, *pieces]
    words = (
        chance.integers(0, 256, (len(texts), HIDDEN // 2), np.uint8),
        np.abs(numbers(len(texts), HIDDEN // BLOCK)) + np.float32(0.01),
    )
    scores = np.array([*(0.0 for _ in FRAME), *pieces.values()], np.float32)
    encoded = [text.encode() for text in texts]
    return builder().Source(weights, words, encoded, scores, (FIRST, LAST, UNKNOWN))


def write_package(folder, pieces):
    """Write the package into a folder; return the path of its file of pieces."""
    made, package = builder(), folder / "mnemic_e5"
    package.mkdir()
    source = source_of(pieces)
    lines = (E5 / "mnemic_e5" / "__init__.py").read_text(encoding="utf-8")
    lines = lines.replace("MAX_TOKENS = 512", f"MAX_TOKENS = {POSITIONS}")
    (package / "__init__.py").write_text(lines, encoding="utf-8")
    weights = made.file_with(source.words, 4, source.weights, POSITIONS)
    (package / "weights.bin").write_bytes(weights)
    (package / "pieces.bin").write_bytes(made.pieces_file(source))
    return package / "pieces.bin"


def small_package(folder, monkeypatch, pieces=PIECES):
    """Have a package with a small model be found first; return the path of its file of pieces."""
    site = folder / "site"
    site.mkdir()
    path = write_package(site, pieces)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "mnemic_e5", raising=False)
    importlib.import_module("mnemic_e5")
    monkeypatch.setitem(sys.modules, "mnemic_e5", sys.modules.pop("mnemic_e5"))
    return path
