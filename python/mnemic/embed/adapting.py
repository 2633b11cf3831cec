"""Turns functions and other libraries' objects into embedders."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from typing import ClassVar, NamedTuple, TypeGuard

from mnemic.arrays import Array
from mnemic.embed.base import AnyEmbedder
from mnemic.embed.functions import EmbeddingFunction
from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import MAX_DIMENSIONS
from mnemic.model.validation import name as checked_name
from mnemic.records.secrets import without_passwords
from mnemic.reporting.description import described, must_be, quoted
from mnemic.reporting.habits import EMBEDDER, AnswersHabits
from mnemic.reporting.near_names import checks_arguments

_MODEL_NAMES = ("model", "model_name", "model_id", "model_name_or_path")
_DIMENSIONS = ("dimensions", "dimension", "embedding_size")
_MAX_TOKENS = ("max_tokens", "max_seq_length")
_SIDES = ("document", "query")
_CHARACTERS_IN_A_TOKEN = 3

FEW_TEXTS = 16
"""Maximum number of texts of a call that is joined with others."""

KNOWN_FORMS = (
    "'minilm', 'multilingual', None, a function of texts, or an object with embed, with encode, or "
    "with embed_documents and embed_query"
)
"""The forms of an embedder, for errors."""


class AdaptedEmbedder(AnswersHabits):
    """An embedder made of a function or of another library's object; see `as_embedder`.

    Attributes:
        given: The function or object.
        model: Name stored with every vector.
        dimensions: Length of each vector; None if it is learned from the first vectors.
        max_tokens: Maximum number of tokens of a text, without its prefix; None for no maximum.
        characters_seen: Returns the number of characters at the beginning of a text that are in its
            vector; None for an estimate.
        similarity_floor: The cosine below which two texts are most likely unrelated, or None.
        languages: The languages whose texts its vectors can compare; None for any.
        batch_size: Maximum number of texts of one call; None for no maximum.
        join_calls: Whether concurrent calls with few texts become one.
        score_floors: See `Embedder`.
    """

    _habits: ClassVar[Mapping[str, str]] = EMBEDDER

    def __init__(
        self,
        given: object,
        documents: "_Side",
        queries: "_Side | None",
        *,
        model: str,
        dimensions: int | None,
        batch_size: int | None,
        languages: object,
        max_tokens: int | None,
        similarity_floor: float | None,
        join_calls: bool,
    ) -> None:
        prefix = max((side.prefix for side in (documents, queries) if side), key=len)
        self.given = given
        self.model = model
        self.dimensions = dimensions
        self.max_tokens = max_tokens
        if max_tokens is not None and prefix:  # those that are left for a text after its prefix
            self.max_tokens = max(1, max_tokens - len(prefix) // _CHARACTERS_IN_A_TOKEN - 1)
        self.characters_seen = _seen_after(prefix, getattr(given, "characters_seen", None))
        self.similarity_floor = similarity_floor
        self.languages = languages
        self.batch_size = batch_size
        self.join_calls = join_calls
        self.score_floors: object = getattr(given, "score_floors", None)
        self._documents = documents
        self._queries = documents if queries is None else queries

    @property
    def has_queries(self) -> bool:
        """Whether queries are embedded apart from documents."""
        return self._queries is not self._documents

    def embed(self, texts: Sequence[str], /) -> Array | Awaitable[Array]:
        """Embed documents.

        Returns:
            Shape (len(texts), dimensions), in the order of `texts`; an awaitable of it where the
            function is a coroutine function.

        Raises:
            EmbedderResultError: If vectors of another form were returned.
        """
        function, prefix = self._documents
        return function.vectors([prefix + text for text in texts])

    def embed_queries(self, texts: Sequence[str], /) -> Array | Awaitable[Array]:
        """Embed queries; otherwise like `embed`.

        Args:
            texts: The queries.
        """
        function, prefix = self._queries
        return function.vectors([prefix + text for text in texts])

    def keeps(self, texts: Sequence[str], /, *, queries: bool) -> bool:
        """Return whether the vectors of texts are there without a call.

        Args:
            texts: The texts.
            queries: Whether they are queries, not documents.
        """
        del texts, queries
        return False

    def joins(self, texts: Sequence[str], /, *, queries: bool) -> bool:
        """Return whether a call with these texts is joined with concurrent ones.

        Args:
            texts: The texts.
            queries: Whether they are queries, not documents.
        """
        del queries
        most = min(FEW_TEXTS, self.batch_size or FEW_TEXTS)
        takes_many = self._documents.function.takes_many is not False
        return self.join_calls and takes_many and 0 < len(texts) <= most

    @property
    def takes_many(self) -> bool:
        """Whether one call embeds several texts; True until it is known."""
        return self._documents.function.takes_many is not False

    def __repr__(self) -> str:
        shown = f"{type(self).__name__}(model={self.model!r}, dimensions={self.dimensions})"
        return without_passwords(shown)


class _Side(NamedTuple):
    """One of the two sides of a search: a function of texts, and the prefix of each text."""

    function: EmbeddingFunction
    prefix: str


@checks_arguments
def as_embedder(
    given: AnyEmbedder,
    /,
    *,
    model: str | None = None,
    dimensions: int | None = None,
    query_prefix: str = "",
    document_prefix: str = "",
    batch_size: int | None = None,
    languages: Collection[str] | None = None,
    max_tokens: int | None = None,
    similarity_floor: float | None = None,
    join_calls: bool | None = None,
) -> AdaptedEmbedder:
    """Return an embedder made of a function, or of an object of another library.

    Accepted are a function or coroutine function, from a text to a vector or from a list of texts
    to their vectors, and objects with these methods, or with their asynchronous forms (`aembed`, …)
    alone:

    - `embed_documents(texts)` and `embed_query(text)`, as LangChain's embeddings;
    - `embed(texts)`, with `embed_query(text)` where queries are embedded otherwise;
    - `encode(texts)`, as sentence-transformers, with `encode_document` and `encode_query`.

    Whether a function takes one text or several is found out by its first call, which passes a
    single text twice, as a list.

    Args:
        given: The function or object.
        model: Name stored with every vector, such as "e5-small-v2"; vectors of different models are
            never compared. By default the object's own, by its attribute `model`, `model_name`,
            `model_id` or `model_name_or_path`.
        dimensions: Length of each vector. By default the object's own, or learned from the file or
            from the first vectors.
        query_prefix: Put before each query, such as "query: ".
        document_prefix: Put before each memory, such as "passage: ".
        batch_size: Maximum number of texts of one call; by default the object's own, or none.
        languages: ISO 639-1 codes of the languages whose texts the vectors can compare; by default
            the object's own, or any.
        max_tokens: Maximum number of tokens of a text; longer texts are embedded in chunks. By
            default the object's own, or none.
        similarity_floor: The cosine below which two texts are most likely unrelated; by default the
            object's own, or none.
        join_calls: Whether concurrent calls with few texts become one; by default, where one call
            takes several texts.

    Raises:
        InvalidArgumentError: If it is none of these, or an option is invalid, or the model has no
            name.
    """
    if isinstance(given, AdaptedEmbedder):
        if model is None:
            return given
        renamed = copy(given)
        renamed.model = _named(model)
        return renamed
    documents, queries = _functions(given)
    for field, prefix in (("query_prefix", query_prefix), ("document_prefix", document_prefix)):
        if not isinstance(prefix, str):
            raise must_be(field, "a str", prefix)
    is_apart = queries is not None or query_prefix != document_prefix
    return AdaptedEmbedder(
        given,
        _Side(documents, document_prefix),
        _Side(queries or documents, query_prefix) if is_apart else None,
        model=_model_of(given, model),
        dimensions=_fitting(_whole("dimensions", dimensions) or _dimensions_of(given)),
        batch_size=_whole("batch_size", batch_size) or _own_whole(given, "batch_size"),
        languages=languages if languages is not None else getattr(given, "languages", None),
        max_tokens=_whole("max_tokens", max_tokens) or _own_whole(given, *_MAX_TOKENS),
        similarity_floor=_floor(given, similarity_floor),
        join_calls=_joins(given, join_calls, documents),
    )


def is_complete(given: object) -> bool:
    """Return whether an object has all members of `Embedder`."""
    return (
        isinstance(getattr(given, "model", None), str)
        and isinstance(getattr(given, "dimensions", None), int)
        and callable(getattr(given, "embed", None))
    )


def _functions(given: object) -> tuple[EmbeddingFunction, EmbeddingFunction | None]:
    """Return the functions of an embedder's documents and of its queries, if they are apart."""
    if isinstance(given, type):
        raise InvalidArgumentError(
            f"embedder is the class {given.__name__}; give an instance of it: {given.__name__}(…)"
        )
    if isinstance(given, str | bytes):
        raise InvalidArgumentError(f"embedder must be {KNOWN_FORMS}; got {quoted(given)}")
    takes_many = is_complete(given) or getattr(given, "takes_many", None) is True
    queries = _function(given, "embed_query", takes_many=False)
    documents = _function(given, "embed_documents", takes_many=True)
    if documents and queries and not takes_many:
        return documents, queries
    if embed := _function(given, "embed", takes_many=takes_many or None):
        return embed, queries
    if encode := _function(given, "encode"):
        of_documents, of_queries = (_function(given, f"encode_{side}") for side in _SIDES)
        return (of_documents, of_queries) if of_documents and of_queries else (encode, None)
    if callable(given):
        return EmbeddingFunction(given, "__call__"), None
    raise InvalidArgumentError(f"embedder must be {KNOWN_FORMS}; got {described(given)}")


def _function(
    given: object, name: str, *, takes_many: bool | None = None
) -> EmbeddingFunction | None:
    """Return the function that a method is, or else its asynchronous form."""
    for known in (name, f"a{name}"):
        if callable(getattr(given, known, None)):
            return EmbeddingFunction(given, known, takes_many=takes_many)
    return None


def _model_of(given: object, named: str | None) -> str:
    if named is not None:
        return _named(named)
    for attribute in _MODEL_NAMES:
        found = getattr(given, attribute, None)
        if isinstance(found, str) and found.strip():
            return checked_name("the embedder's model", found)
    raise InvalidArgumentError(
        f"the embedder ({_kind(given)}) does not name its model. The name is stored with every "
        "vector, so that vectors of two models are never compared. Name it: "
        "Memory(path, embedder=…, embedding_model='my-model-v1')"
    )


def _named(model: object) -> str:
    checked = checked_name("embedding_model", model)
    if not checked.strip():
        raise InvalidArgumentError("embedding_model must not be blank")
    return checked


def _kind(given: object) -> str:
    name = getattr(given, "__name__", None)
    return f"function {name}" if callable(given) and isinstance(name, str) else described(given)


def _dimensions_of(given: object) -> int | None:
    found = _own_whole(given, *_DIMENSIONS)
    if found is not None:
        return found
    computed = getattr(given, "get_sentence_embedding_dimension", None)
    value = computed() if callable(computed) else None
    return value if _is_count(value) else None


def _fitting(dimensions: int | None) -> int | None:
    if dimensions is not None and dimensions > MAX_DIMENSIONS:
        raise InvalidArgumentError(
            f"the embedder has {dimensions} dimensions; at most {MAX_DIMENSIONS} fit"
        )
    return dimensions


def _own_whole(given: object, *names: str) -> int | None:
    for attribute in names:
        found = getattr(given, attribute, None)
        if _is_count(found):
            return found
        if is_complete(given):
            _whole(f"the embedder's {attribute}", found)
    return None


def _whole(field: str, value: object) -> int | None:
    if value is None or _is_count(value):
        return value
    raise must_be(field, "an int of at least 1 or None", value)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _floor(given: object, named: float | None) -> float | None:
    found = getattr(given, "similarity_floor", None) if named is None else named
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not -1 <= found <= 1:
        raise must_be("similarity_floor", "a cosine, from -1 to 1, or None", found)
    return found


def _joins(given: object, named: object, documents: EmbeddingFunction) -> bool:
    found: object = getattr(given, "join_calls", True) if named is None else named
    if not isinstance(found, bool):
        raise must_be("join_calls", "True or False", found)
    return found and documents.takes_many is not False


def _seen_after(prefix: str, seen: Callable[[str], int] | None) -> Callable[[str], int] | None:
    if seen is None or not prefix:
        return seen
    return lambda text: max(0, seen(prefix + text) - len(prefix))
