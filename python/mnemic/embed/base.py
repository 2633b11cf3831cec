"""The contract of every embedder, and the checks they share."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from mnemic.arrays import Array, BoolArray, Float32Array, np
from mnemic.errors import InvalidArgumentError


@runtime_checkable
class Embedder(Protocol):
    """Converts texts to unit vectors whose inner product measures how related the texts are.

    Any object with these members is accepted, without inheritance. `embed` is called from worker
    threads, possibly from several at once. It may be a coroutine function, or return another
    awaitable: then it is awaited on one event loop in a thread of the memory, where several calls
    may run at once, is cancelled with its caller, and ends with `close`. It may also have

    - `embed_query(text)`, which embeds a query, where queries are embedded otherwise than memories;
      `embed` is for memories alone then;
    - `batch_size`, the maximum number of texts of one call;
    - `takes_many`, True where `embed` takes a list of texts though `dimensions` are not known yet;
    - `join_calls`, False where concurrent calls with few texts must not become one;
    - `max_tokens`, the maximum number of tokens of a text in its vector: longer texts are embedded
      in chunks;
    - `characters_seen(text)`, the number of characters at the beginning of a text that these tokens
      cover; estimated without it;
    - `similarity_floor`, the cosine below which two texts are most likely unrelated;
    - `score_floors`, the floors of `min_score="auto"`, as a dict with "hybrid" and "semantic": the
      cosine below which the best memory of a query is most likely no answer, in a hybrid search
      where no memory has a word of the query, and in a semantic one. What is left out follows from
      `similarity_floor`; with both, its cosines count as they are in a ranking;
    - `languages`, the languages whose texts its vectors can compare, as a set of ISO 639-1 codes;
      without it, or with None, any. A hybrid search ranks queries and memories in other languages
      by their keywords alone; they are distinguished by their scripts.
    """

    @property
    def model(self) -> str:
        """Name stored with every vector; vectors of different models are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        ...

    def embed(self, texts: Sequence[str], /) -> Array | Awaitable[Array]:
        """Embed each text, independently of the other texts in `texts`.

        Args:
            texts: Memories, and queries where there is no `embed_query`.

        Returns:
            Shape (len(texts), dimensions), finite numbers, rows in the order of `texts`.
        """
        ...


class HasEmbed(Protocol):
    """Embeds texts by `embed`."""

    def embed(self, texts: Any, /) -> Any:
        """Return the vectors of texts."""
        ...


class HasEncode(Protocol):
    """Embeds texts by `encode`, as sentence-transformers."""

    def encode(self, texts: Any, /) -> Any:
        """Return the vectors of texts."""
        ...


class HasEmbedDocuments(Protocol):
    """Embeds documents and queries apart, as LangChain's embeddings."""

    def embed_documents(self, texts: Any, /) -> Any:
        """Return the vectors of documents."""
        ...

    def embed_query(self, text: Any, /) -> Any:
        """Return the vector of a query."""
        ...


AnyEmbedder: TypeAlias = Embedder | HasEmbed | HasEncode | HasEmbedDocuments | Callable[[Any], Any]
"""The forms of an embedder; see `mnemic.as_embedder`."""


class EmbeddingBatch(NamedTuple):
    """Vectors, and which of their texts were truncated."""

    vectors: Float32Array
    """Shape (n, dimensions), rows of unit length."""

    truncated: BoolArray
    """Shape (n,): whether the end of the text was left out."""

    @property
    def truncated_count(self) -> int:
        """Number of texts that were cut."""
        return int(np.count_nonzero(self.truncated))


DEADLINE: Final[ContextVar[float | None]] = ContextVar("mnemic_embedding_deadline", default=None)
"""The deadline of the call that an embedder with `keeps_deadlines` answers."""


def checked_texts(texts: object, /) -> list[str]:
    """Return `texts` as a list.

    Raises:
        InvalidArgumentError: If it is one string instead of a sequence of them, or an item is not
            a string, or holds half of a surrogate pair and so is no text.
    """
    if isinstance(texts, str | bytes):
        raise InvalidArgumentError("texts must be a sequence of strings, not one string: [text]")
    if not isinstance(texts, Iterable):
        raise InvalidArgumentError(f"texts must be a sequence of strings, not {_type(texts)}")
    return [_checked_text(position, text) for position, text in enumerate(texts)]


def _checked_text(position: int, text: object) -> str:
    if not isinstance(text, str):
        raise InvalidArgumentError(f"texts[{position}] must be a string, not {_type(text)}")
    if not _is_unicode(text):
        raise InvalidArgumentError(f"texts[{position}] holds half of a surrogate pair")
    return text


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _type(value: object) -> str:
    return type(value).__name__
