"""The sentence embedding model multilingual-e5-small in integers, with its tokenizer.

Data only: nothing is imported beyond the standard library, and nothing is downloaded. The files are
those that `mnemic._core` maps; `build_model.py` makes them.
"""

from pathlib import Path

__all__ = [
    "DIMENSIONS",
    "MAX_TOKENS",
    "MODEL_NAME",
    "SOURCE_SHA256",
    "TOKENIZER_SHA256",
    "WEIGHTS_SHA256",
    "__version__",
    "tokenizer_path",
    "weights_path",
]

__version__ = "0.1.0"

MODEL_NAME = "multilingual-e5-small-q4-int8-projected"
DIMENSIONS = 384
MAX_TOKENS = 512

WEIGHTS_SHA256 = "8d5f04845973108636702e78c8bf906f4d3d307ae5eced055068e99cad514737"
"""SHA-256 of the file at `weights_path()`; `build_model.py` makes exactly these bytes."""

TOKENIZER_SHA256 = "caf773ca831e2f340f66d638080e1a14c7b17ef83169b27d171a28e166c776da"
"""SHA-256 of the file at `tokenizer_path()`."""

SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""SHA-256 of the file that the model was built from."""

_FOLDER = Path(__file__).parent


def weights_path() -> Path:
    """Return the path of the file of weights."""
    return _FOLDER / "weights.bin"


def tokenizer_path() -> Path:
    """Return the path of the file of the tokenizer's pieces."""
    return _FOLDER / "pieces.bin"
