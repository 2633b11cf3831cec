"""The sentence embedding model all-MiniLM-L6-v2 in 8-bit integers, with its tokenizer.

Data only: nothing is imported beyond the standard library, and nothing is downloaded. The file of
weights is the one that `mnemic._core.SentenceEncoder` maps; `build_model.py` describes it.
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

MODEL_NAME = "all-MiniLM-L6-v2-int8-per-token"
DIMENSIONS = 384
MAX_TOKENS = 256

WEIGHTS_SHA256 = "3f2138912ee9fbc2635b98078af53bb32a2283be6c44d41713bf4cb98b9b665b"
"""SHA-256 of the file at `weights_path()`; `build_model.py` makes exactly these bytes."""

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""SHA-256 of the file at `tokenizer_path()`, as published with the model."""

SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the published float32 weights that the model was built from."""

_FOLDER = Path(__file__).parent


def weights_path() -> Path:
    """Return the path of the file of weights."""
    return _FOLDER / "weights.bin"


def tokenizer_path() -> Path:
    """Return the path of the tokenizer, in the format of the `tokenizers` package.

    The file is as published, with padding and truncation to 128 tokens switched on; switch the
    padding off and truncate at `MAX_TOKENS` after loading it.
    """
    return _FOLDER / "tokenizer.json"
