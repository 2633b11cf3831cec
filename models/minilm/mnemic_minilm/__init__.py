"""The sentence embedding model all-MiniLM-L6-v2 as an int8 ONNX file, with its tokenizer.

Data only: nothing is imported beyond the standard library, and nothing is downloaded. The graph
takes `input_ids`, int64 of shape (1, tokens) with at most `MAX_TOKENS` of them, for one text at a
time. It returns `sentence_embedding`, float32 of shape (1, `DIMENSIONS`) and unit length, and
`token_embeddings`, float32 of shape (1, tokens, `DIMENSIONS`): the last hidden state, from which
the first is pooled, so requesting it costs no further computation.
"""

from pathlib import Path

__all__ = [
    "DIMENSIONS",
    "MAX_TOKENS",
    "MODEL_NAME",
    "MODEL_SHA256",
    "TOKENIZER_SHA256",
    "WEIGHTS_SHA256",
    "__version__",
    "model_path",
    "tokenizer_path",
]

__version__ = "0.1.0"

MODEL_NAME = "all-MiniLM-L6-v2-int8"
DIMENSIONS = 384
MAX_TOKENS = 256

MODEL_SHA256 = "e81fbcd1d55abb50a10a4204cdb7879cdebc4777c02b483ec6264764859cef27"
"""SHA-256 of the file at `model_path()`; `build_model.py` makes exactly these bytes."""

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""SHA-256 of the file at `tokenizer_path()`, as published with the model."""

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the published float32 weights that the model was built from."""

_FOLDER = Path(__file__).parent


def model_path() -> Path:
    """Return the path of the ONNX file."""
    return _FOLDER / "model.onnx"


def tokenizer_path() -> Path:
    """Return the path of the tokenizer, in the format of the `tokenizers` package.

    The file is as published, with padding and truncation to 128 tokens switched on; switch the
    padding off and truncate at `MAX_TOKENS` after loading it.
    """
    return _FOLDER / "tokenizer.json"
