"""The embedders whose models come in packages: on the CPU, offline, a millisecond a sentence."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Protocol, cast, final

import numpy as np

from mnemic._core import SentenceEncoder, Tokenizer
from mnemic.arrays import Float32Array
from mnemic.embed.base import DEADLINE, EmbeddingBatch, checked_texts
from mnemic.errors import EmbeddingError, InvalidArgumentError, MissingExtraError
from mnemic.model.validation import whole
from mnemic.reporting.habits import EMBEDDER, AnswersHabits, NotPickled
from mnemic.reporting.logs import logger
from mnemic.reporting.near_names import checks_arguments

_logger = logger(__name__)


class _LocalEmbedder(NotPickled, AnswersHabits, ABC):
    """Embeds with the model of a package, which is data alone."""

    _habits: ClassVar[Mapping[str, str]] = EMBEDDER
    _not_pickled: ClassVar[str] = (
        "{name} cannot be pickled or copied, because it has a mapped file; make it in the process "
        "that uses it"
    )
    _package: ClassVar[str]
    _extra: ClassVar[str]
    _document_prefix: ClassVar[str] = ""
    _query_prefix: ClassVar[str] = ""

    join_calls = False  # they would wait for each other, and gain little
    similarity_floor: float | None = None
    languages: frozenset[str] | None = None

    def __init__(self, threads: int | None) -> None:
        if threads is not None:
            whole("threads", threads, minimum=1, error=InvalidArgumentError)
        data = self._data()
        self.model: str = data.MODEL_NAME
        self.dimensions: int = data.DIMENSIONS
        self.max_tokens: int = data.MAX_TOKENS
        self.score_floors: dict[str, float] = {}
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

        Args:
            texts: Any number of texts.

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
        return self._batch(self._document_prefix, checked_texts(texts))

    def _batch(self, prefix: str, texts: list[str]) -> EmbeddingBatch:
        if not texts:
            return EmbeddingBatch(np.empty((0, self.dimensions), np.float32), np.empty(0, np.bool_))
        given = [prefix + text for text in texts] if prefix else texts
        encoder = self._load().encoder
        try:
            found = encoder.embed(given, threads=self._threads, deadline=DEADLINE.get())
        except InvalidArgumentError as error:  # the texts were checked
            raise EmbeddingError(
                f"the files of the model do not fit each other: {error}"
            ) from error
        batch = EmbeddingBatch(*found)
        self._warn_of_truncation(batch.truncated_count, len(texts))
        return batch

    def characters_seen(self, text: str, /) -> int:
        """Return how many characters at the beginning of a text are in its vector.

        Args:
            text: Any text.

        Raises:
            EmbeddingError: If the model cannot be loaded.
            InvalidArgumentError: If the text holds a lone surrogate.
        """
        prefix, (text,) = self._document_prefix, checked_texts([text])
        return max(0, self._load().tokenizer.characters_seen(prefix + text) - len(prefix))

    def _load(self) -> "_Model":
        """Return the loaded model.

        Concurrent first calls each load it, in a few milliseconds; a lock would stay locked in a
        process that is forked meanwhile.
        """
        loaded = self._loaded
        if loaded is None:
            data = self._data()
            try:
                tokenizer = self._tokenizer(data.tokenizer_path())
            except (OSError, InvalidArgumentError) as error:
                raise EmbeddingError(f"the tokenizer cannot be loaded: {error}") from error
            loaded = self._loaded = _Model(
                tokenizer, SentenceEncoder(data.weights_path(), tokenizer)
            )
        return loaded

    @abstractmethod
    def _tokenizer(self, path: Path) -> Tokenizer: ...

    def _data(self) -> "_Data":
        try:
            module = cast("object", import_module(self._package))
        except ImportError as error:
            raise MissingExtraError(
                f"this embedder needs {self._package.replace('_', '-')}: "
                f"python -m pip install 'mnemic[{self._extra}]'"
            ) from error
        return cast("_Data", module)

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


@final
class MiniLmEmbedder(_LocalEmbedder):
    """Embeds with the model of the `mnemic-minilm` package: 384 dimensions, nothing to download.

    The model is all-MiniLM-L6-v2. Construction is cheap; it is loaded by the first `embed`.
    Thread-safe. A vector is the same, bit for bit, on every CPU and whatever texts are beside it.

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

    _package: ClassVar[str] = "mnemic_minilm"
    _extra: ClassVar[str] = "local"

    similarity_floor: float | None = 0.25
    """Measured on pairs of related and unrelated sentences; see docs/tune/embedding.md."""

    languages: frozenset[str] | None = frozenset({"en"})
    """Those of its training data; the tokenizer knows hardly any other script."""

    @checks_arguments
    def __init__(self, *, threads: int | None = None) -> None:
        super().__init__(threads)
        # Measured on questions over six sets of memories and on nonsense:
        # docs/project/lab/quality.md.
        self.score_floors: dict[str, float] = {"hybrid": 0.42, "semantic": 0.25}

    def _tokenizer(self, path: Path) -> Tokenizer:
        return Tokenizer.word_piece(path.read_bytes(), max_tokens=self.max_tokens)


@final
class E5Embedder(_LocalEmbedder):
    """Embeds texts of any language with the model of the `mnemic-e5` package: 384 dimensions.

    The model is multilingual-e5-small (Wang et al. 2024, arXiv 2402.05672), which compares a text
    with a question in another language, too. It is twice as deep as that of `MiniLmEmbedder`, and
    like it in everything that is not said here. Its vectors are centred and projected, and not
    comparable with those of the published model. It has no floors: they are learned from the
    memories.

    Args:
        threads: The most threads that embed the texts of one call; None for all CPUs.

    Attributes:
        model: Name stored with every vector.
        dimensions: 384.
        max_tokens: Tokens of a text in its vector; longer memories are embedded in chunks.
        similarity_floor: None.
        score_floors: None are set.
        languages: None, for any.

    Raises:
        MissingExtraError: If mnemic-e5 is not installed.
        InvalidArgumentError: If `threads` is less than 1.
    """

    _package: ClassVar[str] = "mnemic_e5"
    _extra: ClassVar[str] = "multilingual"
    _document_prefix: ClassVar[str] = "passage: "
    _query_prefix: ClassVar[str] = "query: "

    @checks_arguments
    def __init__(self, *, threads: int | None = None) -> None:
        super().__init__(threads)

    def embed_query(self, text: str, /) -> Float32Array:
        """Embed a question, to be compared with memories.

        Args:
            text: Any text.

        Returns:
            Shape (384,), float32, of unit length.

        Raises:
            InvalidArgumentError: If it is not a string.
            EmbeddingError: If the model cannot be loaded or run.
        """
        vector: Float32Array = self._batch(self._query_prefix, checked_texts([text])).vectors[0]
        return vector

    def _tokenizer(self, path: Path) -> Tokenizer:
        return Tokenizer.unigram(path, max_tokens=self.max_tokens)


LOCAL_EMBEDDERS: Final = {"minilm": MiniLmEmbedder, "multilingual": E5Embedder}
"""The embedders that a name stands for."""


class _Data(Protocol):
    """The part of the module of a package that is used here."""

    MODEL_NAME: str
    DIMENSIONS: int
    MAX_TOKENS: int

    def weights_path(self) -> Path: ...
    def tokenizer_path(self) -> Path: ...


class _Model(NamedTuple):
    """The loaded tokenizer and encoder; both may be used by several threads at once."""

    tokenizer: Tokenizer
    encoder: SentenceEncoder
