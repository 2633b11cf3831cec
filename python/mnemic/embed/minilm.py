"""The default embedder: all-MiniLM-L6-v2 on the CPU, offline, about a millisecond a sentence."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, cast, final

import msgspec
import numpy as np

from mnemic._core import WordPieceTokenizer
from mnemic.arrays import Float32Array, Int64Array
from mnemic.embed.base import EmbeddingBatch, checked_texts
from mnemic.errors import EmbeddingError, InvalidArgumentError, MissingExtraError
from mnemic.model.validation import whole
from mnemic.reporting.habits import EMBEDDER, AnswersHabits
from mnemic.reporting.logs import logger
from mnemic.reporting.near_names import checks_arguments
from mnemic.threads.locks import Lock, settling

SIMILARITY_FLOOR = 0.25
"""Measured on pairs of related and unrelated sentences; see docs/concepts/embedding.md."""

SCORE_FLOORS = {"hybrid": 0.42, "semantic": 0.25}
"""Measured on questions over six sets of memories, and on nonsense; see docs/lab/quality.md."""

LANGUAGES = frozenset({"en"})
"""The languages of its training data; the tokenizer knows hardly any other script."""

_RUNTIME = "onnxruntime"  # imported by the first embed
_ERRORS_ONLY = 3  # onnxruntime's logging levels: verbose, info, warning, error, fatal
_SLOWER = ("SkipLayerNormFusion",)  # its fused operator costs 7 % more than the two it replaces

_logger = logger(__name__)


@final
class MiniLmEmbedder(AnswersHabits):
    """Embeds with the model of the `mnemic-minilm` package: 384 dimensions, nothing to download.

    Construction is cheap; onnxruntime and the model are loaded by the first `embed`. Thread-safe.
    Each text is one run of the model, so its vector does not depend on the texts beside it, bit for
    bit.

    All blank texts have the same vector; it carries no meaning, so callers should not search with
    it.

    Args:
        threads: Number of texts of one call that are embedded at the same time; a single text
            always runs on one thread. The vectors are the same for every number.

    Attributes:
        model: Name stored with every vector.
        dimensions: 384.
        max_tokens: Tokens of a text in its vector; longer memories are embedded in chunks.
        similarity_floor: The cosine below which two texts are most likely unrelated.
        score_floors: The floors of `min_score="auto"`, by search type.
        languages: The languages whose texts its vectors can compare.

    Raises:
        MissingExtraError: If onnxruntime or mnemic-minilm is not installed.
        InvalidArgumentError: If `threads` is less than 1.
    """

    _habits: ClassVar[Mapping[str, str]] = EMBEDDER

    join_calls = False  # each text is one run of the model: joined calls would wait for each other

    @checks_arguments
    def __init__(self, *, threads: int = 1) -> None:
        whole("threads", threads, minimum=1, error=InvalidArgumentError)
        data = cast("_Data", _extra("mnemic_minilm"))
        _require(_RUNTIME)
        self.model: str = data.MODEL_NAME
        self.dimensions: int = data.DIMENSIONS
        self.max_tokens: int = data.MAX_TOKENS
        self.similarity_floor: float | None = SIMILARITY_FLOOR
        self.score_floors = dict(SCORE_FLOORS)
        self.languages = LANGUAGES
        self._threads = threads
        self._lock = Lock()
        self._runtime: _Runtime | None = None
        self._has_warned = False

    def embed(self, texts: Sequence[str], /) -> Float32Array:
        """Embed each text by its first `max_tokens` tokens.

        The first time a text is longer than that, a warning is logged; `embed_batch` tells which.

        Returns:
            Shape (len(texts), 384), float32, rows of unit length in the order of `texts`.

        Raises:
            InvalidArgumentError: If `texts` is one string, or an item is not a string.
            EmbeddingError: If the model cannot be loaded or run.
        """
        return self.embed_batch(texts).vectors

    def embed_batch(self, texts: Sequence[str], /) -> EmbeddingBatch:
        """Embed as `embed` does, and return which texts were longer than `max_tokens`.

        Args:
            texts: Any number of texts.
        """
        checked = checked_texts(texts)
        vectors = np.empty((len(checked), self.dimensions), np.float32)
        truncated = np.zeros(len(checked), np.bool_)
        for row, (vector, cut) in enumerate(self._each(checked)):
            vectors[row], truncated[row] = vector, cut
        batch = EmbeddingBatch(vectors, truncated)
        self._warn_of_truncation(batch.truncated_count, len(checked))
        return batch

    def characters_seen(self, text: str, /) -> int:
        """Return how many characters at the beginning of a text are in its vector.

        Args:
            text: Any text.

        Raises:
            EmbeddingError: If the model cannot be loaded.
            InvalidArgumentError: If the text holds a lone surrogate.
        """
        return self._load().tokenizer.characters_seen(text)

    def _each(self, texts: list[str]) -> Iterator[tuple[Float32Array, bool]]:
        if not texts:
            return
        embed = self._load().embed
        if self._threads == 1 or len(texts) == 1:
            yield from map(embed, texts)
            return
        with ThreadPoolExecutor(min(self._threads, len(texts)), "mnemic-embed") as pool:
            with settling():
                results = pool.map(embed, texts)
            yield from results

    def _load(self) -> "_Runtime":
        """Return the loaded model; concurrent first calls load it once."""
        runtime = self._runtime
        if runtime is None:
            with self._lock:
                runtime = self._runtime
                if runtime is None:
                    runtime = self._runtime = _load_runtime(self.max_tokens)
        return runtime

    def _warn_of_truncation(self, count: int, total: int) -> None:
        if not count:
            return
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        _logger.log(
            level,
            "%d of %d texts are longer than %d tokens; the rest of them is not in their vectors",
            count,
            total,
            self.max_tokens,
        )


class _AddedToken(msgspec.Struct):
    content: str


class _WordPiece(msgspec.Struct):
    vocab: dict[str, int]


class _TokenizerFile(msgspec.Struct):
    """The part of a `tokenizer.json` of an uncased BERT model in which such models differ."""

    added_tokens: list[_AddedToken]
    model: _WordPiece


class _Session(Protocol):
    def run(self, outputs: Sequence[str], feed: Mapping[str, Int64Array]) -> list[Float32Array]: ...


class _Options(Protocol):
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int

    def add_session_config_entry(self, key: str, value: str) -> None: ...


class _OnnxRuntime(Protocol):
    """The part of the module onnxruntime, which has no types of its own, that is used here."""

    def disable_telemetry_events(self) -> None: ...
    def SessionOptions(self) -> _Options: ...  # noqa: N802 - its name there
    def InferenceSession(  # noqa: N802 - its name there
        self,
        path: str,
        options: _Options,
        providers: Sequence[str],
        *,
        disabled_optimizers: Sequence[str],
    ) -> _Session: ...


class _Data(Protocol):
    """The part of the module mnemic_minilm that is used here."""

    MODEL_NAME: str
    DIMENSIONS: int
    MAX_TOKENS: int

    def model_path(self) -> Path: ...
    def tokenizer_path(self) -> Path: ...


class _Runtime(NamedTuple):
    """The loaded tokenizer and model; both may be used by several threads at once."""

    tokenizer: WordPieceTokenizer
    session: _Session

    def embed(self, text: str) -> tuple[Float32Array, bool]:
        """Return the text's vector, shape (384,), and whether the text was cut."""
        tokens, truncated = self.tokenizer.encode(text)
        try:
            return self.session.run(["sentence_embedding"], {"input_ids": tokens})[0][0], truncated
        except Exception as error:  # the library raises bare exceptions; it has not seen the text
            raise EmbeddingError(f"the model failed: {error}") from error


def _load_runtime(max_tokens: int) -> "_Runtime":
    onnxruntime = cast("_OnnxRuntime", _extra(_RUNTIME))
    data = cast("_Data", _extra("mnemic_minilm"))
    try:
        tokenizer = _tokenizer(data.tokenizer_path(), max_tokens)
        return _Runtime(tokenizer, _session(onnxruntime, str(data.model_path())))
    except Exception as error:  # the library raises bare exceptions
        raise EmbeddingError(f"the model could not be loaded: {error}") from error


def _tokenizer(path: Path, max_tokens: int) -> WordPieceTokenizer:
    """Load the tokenizer of an uncased BERT model; the padding and truncation there are ignored."""
    file = msgspec.json.decode(path.read_bytes(), type=_TokenizerFile)
    special = [token.content for token in file.added_tokens]
    return WordPieceTokenizer(file.model.vocab, special_tokens=special, max_tokens=max_tokens)


def _session(onnxruntime: _OnnxRuntime, path: str) -> _Session:
    """Open the model for the calling thread alone: no pool, spinning, telemetry or chatter."""
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        path, options, ["CPUExecutionProvider"], disabled_optimizers=_SLOWER
    )


def _require(name: str) -> None:
    """Check that a module is installed, without importing it."""
    try:
        found = find_spec(name) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise _missing(name)


def _extra(name: str) -> object:
    """Import a module of the `local` extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise _missing(name) from error


def _missing(name: str) -> MissingExtraError:
    package = name.replace("_", "-")
    return MissingExtraError(
        f"the default embedder needs {package}: python -m pip install 'mnemic[local]'"
    )
