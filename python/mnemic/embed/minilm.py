"""The default embedder: all-MiniLM-L6-v2 on the CPU, offline, below a millisecond a sentence."""

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, cast, final

import numpy as np

from mnemic._core import SentenceEncoder, WordPieceTokenizer
from mnemic.arrays import Float32Array
from mnemic.embed.base import DEADLINE, EmbeddingBatch, checked_texts
from mnemic.errors import EmbeddingError, InvalidArgumentError, MissingExtraError
from mnemic.model.validation import whole
from mnemic.reporting.habits import EMBEDDER, AnswersHabits, NotPickled
from mnemic.reporting.logs import logger
from mnemic.reporting.near_names import checks_arguments

SIMILARITY_FLOOR = 0.25
"""Measured on pairs of related and unrelated sentences; see docs/tune/embedding.md."""

SCORE_FLOORS = {"hybrid": 0.42, "semantic": 0.25}
"""Measured on questions over six sets of memories and on nonsense: docs/project/lab/quality.md."""

LANGUAGES = frozenset({"en"})
"""The languages of its training data; the tokenizer knows hardly any other script."""

_logger = logger(__name__)


@final
class MiniLmEmbedder(NotPickled, AnswersHabits):
    """Embeds with the model of the `mnemic-minilm` package: 384 dimensions, nothing to download.

    Construction is cheap; the model is loaded by the first `embed`. Thread-safe. A vector is the
    same, bit for bit, on every CPU and whatever texts are beside it.

    All blank texts have the same vector; it carries no meaning, so callers should not search with
    it.

    Args:
        threads: The most threads that embed the texts of one call; None for all CPUs. Few texts are
            embedded by one. The vectors are the same for every number.

    Attributes:
        model: Name stored with every vector.
        dimensions: 384.
        max_tokens: Tokens of a text in its vector; longer memories are embedded in chunks.
        similarity_floor: The cosine below which two texts are most likely unrelated.
        score_floors: The floors of `min_score="auto"`, by search type.
        languages: The languages whose texts its vectors can compare.

    Raises:
        MissingExtraError: If mnemic-minilm is not installed.
        InvalidArgumentError: If `threads` is less than 1.
    """

    _habits: ClassVar[Mapping[str, str]] = EMBEDDER
    _not_pickled: ClassVar[str] = (
        "{name} cannot be pickled or copied, because it has a mapped file; make it in the process "
        "that uses it"
    )

    join_calls = False  # they would wait for each other, and gain little

    @checks_arguments
    def __init__(self, *, threads: int | None = None) -> None:
        if threads is not None:
            whole("threads", threads, minimum=1, error=InvalidArgumentError)
        data = _data()
        self.model: str = data.MODEL_NAME
        self.dimensions: int = data.DIMENSIONS
        self.max_tokens: int = data.MAX_TOKENS
        self.similarity_floor: float | None = SIMILARITY_FLOOR
        self.score_floors = dict(SCORE_FLOORS)
        self.languages = LANGUAGES
        self._threads = threads
        self._loaded: _Model | None = None
        self._has_warned = False

    @property
    def keeps_deadlines(self) -> bool:
        """Whether a call ends at its deadline by itself; once the model is loaded."""
        return self._loaded is not None

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
        if not checked:
            return EmbeddingBatch(np.empty((0, self.dimensions), np.float32), np.empty(0, np.bool_))
        batch = EmbeddingBatch(
            *self._load().encoder.embed(checked, threads=self._threads, deadline=DEADLINE.get())
        )
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

    def _load(self) -> "_Model":
        """Return the loaded model.

        Concurrent first calls each load it, in a few milliseconds; a lock would stay locked in a
        process that is forked meanwhile.
        """
        loaded = self._loaded
        if loaded is None:
            loaded = self._loaded = _load_model(self.max_tokens)
        return loaded

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


class _Data(Protocol):
    """The part of the module mnemic_minilm that is used here."""

    MODEL_NAME: str
    DIMENSIONS: int
    MAX_TOKENS: int

    def weights_path(self) -> Path: ...
    def tokenizer_path(self) -> Path: ...


class _Model(NamedTuple):
    """The loaded tokenizer and encoder; both may be used by several threads at once."""

    tokenizer: WordPieceTokenizer
    encoder: SentenceEncoder


def _load_model(max_tokens: int) -> _Model:
    data = _data()
    try:
        tokenizer = WordPieceTokenizer(data.tokenizer_path().read_bytes(), max_tokens=max_tokens)
    except (OSError, InvalidArgumentError) as error:
        raise EmbeddingError(f"the tokenizer cannot be loaded: {error}") from error
    return _Model(tokenizer, SentenceEncoder(data.weights_path(), tokenizer))


def _data() -> _Data:
    try:
        module = cast("object", import_module("mnemic_minilm"))
    except ImportError as error:
        raise MissingExtraError(
            "the default embedder needs mnemic-minilm: python -m pip install 'mnemic[local]'"
        ) from error
    return cast("_Data", module)
