"""The vectors of a query: of its text, of texts of the same meaning, or of a stored memory."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

import msgspec

from mnemic._core import Coverage
from mnemic.arrays import Array, Float32Array, np
from mnemic.embed.validated import ValidatedEmbedder, learned_floor
from mnemic.errors import EmbeddingError, EmbeddingModelMismatchError
from mnemic.index import NativeIndex, RankInputs
from mnemic.model import SEMANTIC, AdaptiveShare, Scope
from mnemic.model.search import DefaultFloors, EvidenceFloor, Search
from mnemic.observability.spans import embedding
from mnemic.repository.parts import Part, Shared
from mnemic.repository.vector_model import VectorModel
from mnemic.store.operations import VectorsOfRow
from mnemic.threads.calls import current_turn
from mnemic.threads.locks import Lock
from mnemic.threads.single_flight import Bounds, SingleFlightCache

Vectors: TypeAlias = list[Float32Array]
Query: TypeAlias = tuple[str | None, bool, str]
"""User, whether all users, and text of a query."""

MAX_BYTES = 16 * 2**20
"""Maximum bytes of kept texts and vectors: 1,024 queries of 3,072 dimensions are 12 MB."""

_OVERHEAD = 512  # bytes of a kept query beside its text and its numbers


def _limited(similarity: float | AdaptiveShare, share: float) -> float | AdaptiveShare:
    """Return at most this share of similarity."""
    match similarity:
        case AdaptiveShare(short, long, length):
            return AdaptiveShare(min(short, share), min(long, share), length)
        case fixed:
            return min(fixed, share)


class AnnouncedSearch(NamedTuple):
    """A search that a piece of work of an event loop is about to make.

    Attributes:
        embeds: The `QueryVectors` that embed it.
        scope: Its scope.
        search: The request.
    """

    embeds: object
    scope: Scope
    search: Search


class TurnTexts:
    """Vectors of the texts of one turn's searches.

    The first search that needs a vector embeds the texts of all; the others wait for it. If that
    call fails, each search embeds its own texts, so that no text fails another's search.

    Args:
        texts: The texts of the searches beside, which are known only once the index is up to date.
    """

    def __init__(self, texts: Callable[[], Sequence[str]]) -> None:
        self._texts: Callable[[], Sequence[str]] | None = texts
        self._lock = Lock()
        self._vectors: dict[str, Float32Array] = {}

    def embedded(self, texts: list[str], embed: Callable[[list[str]], Vectors]) -> Vectors:
        """Return the vectors of one search's texts.

        Args:
            texts: The texts.
            embed: Embeds texts.

        Raises:
            EmbeddingError: If the embedder fails.
        """
        with self._lock:
            beside, self._texts = self._texts, None
            if beside is not None:
                self._embed_all([*texts, *beside()], embed)
        missing = [text for text in texts if text not in self._vectors]
        found = dict(zip(missing, embed(missing), strict=True)) if missing else {}
        return [found[text] if text in found else self._vectors[text] for text in texts]

    def _embed_all(self, texts: list[str], embed: Callable[[list[str]], Vectors]) -> None:
        different = list(dict.fromkeys(texts))
        with suppress(EmbeddingError):
            self._vectors = dict(zip(different, embed(different), strict=True))


def _covered(search: Search, text: str, coverage: Coverage) -> Search:
    """Return a search as its ranking and the embedder's languages want it.

    In a hybrid search that minds what is covered, similarity has the share that is left to the
    language of the query; if that is none, it becomes a search by keywords. Other texts of the same
    meaning that are covered less are left out.
    """
    share = coverage.max_share(text)
    if share == 0:
        return search.by_keywords
    also = tuple(each for each in search.also if coverage.max_share(each) >= share)
    if share == 1 and also == search.also:
        return search
    limited = _limited(search.ranking.similarity, share)
    ranking = msgspec.structs.replace(search.ranking, similarity=limited)
    return msgspec.structs.replace(search, ranking=ranking, also=also)


def _type(search: Search) -> str:
    return "hybrid" if search.ranking.has_keywords else "semantic"


MIN_NORM = 1e-10
"""A vector shorter than this has no direction."""

FIRST_HITS = 20
"""First hits of a question, which hypotheses are compared with."""

NEAREST = 200
"""Memories nearest to a hypothesis; where none of them is a first hit, it leads elsewhere."""


class QueryVectors(Part):
    """Embeds queries over one agent's memories.

    Args:
        shared: What it shares with the others.
        model: Model of the memories' vectors; its embedder gives those of texts.
    """

    def __init__(self, shared: Shared, model: VectorModel) -> None:
        super().__init__(shared)
        embedder = model.embedder
        self._is_waiting = shared.models.is_waiting
        self._embedder = embedder
        self._coverage = None if embedder is None else embedder.coverage
        self._model = model
        bounds = Bounds(shared.settings.query_cache, MAX_BYTES, MAX_BYTES)
        self._kept = SingleFlightCache[Query, Float32Array](bounds, _bytes_of)

    def adapted(self, search: Search) -> Search:
        """Return a search as the embedder wants it: by its languages, with floors of its own."""
        if self._coverage is not None and search.text is not None and search.needs_coverage:
            search = _covered(search, search.text, self._coverage)
        embedder, compares = self._embedder, search.ranking.has_similarity
        if embedder is not None and embedder.similarity_floor is not None:
            if search.uses_similarity_floor:
                search = msgspec.structs.replace(
                    search,
                    min_similarity=embedder.similarity_floor,
                    uses_similarity_floor=False,
                )
            search = msgspec.structs.replace(search, default_floors=DefaultFloors())
        if search.needs_evidence:
            own = (
                embedder.score_floors[_type(search)] if embedder is not None and compares else None
            )
            search = msgspec.structs.replace(search, evidence=EvidenceFloor(own))
        return search

    def with_learned_scale(
        self, search: Search, scope: Scope, now: int, index: NativeIndex
    ) -> Search:
        """Return a search with the scale of the user's memories, and their floors if it has none.

        Args:
            search: A search of `adapted`.
            scope: Its user's memories have the scale.
            now: Microseconds since 1970 in UTC.
            index: Has these memories.
        """
        evidence, ranking = search.evidence, search.ranking
        # By meaning alone nothing makes up for a scale of memories that are all alike.
        is_hybrid = ranking.has_similarity and ranking.has_keywords
        lacks_evidence = is_hybrid and evidence is not None and evidence.similarity is None
        is_calibrated = self._embedder is not None and self._embedder.is_calibrated
        if is_calibrated or not search.uses_meaning:
            return search
        scale = index.scale(scope, now).scale
        if search.uses_similarity_floor:
            least = search.default_floors.similarity if scale is None else scale.floor
            search = msgspec.structs.replace(search, min_similarity=least)
        if scale is None and search.min_score is None:
            search = msgspec.structs.replace(search, min_score=search.default_floors.score)
        if lacks_evidence:
            learned = EvidenceFloor(learned_floor(scale), is_learned=True)
            search = msgspec.structs.replace(search, evidence=learned)
        return msgspec.structs.replace(search, scale=scale)

    def of(
        self, scope: Scope, search: Search, now: int, index: NativeIndex | None = None
    ) -> tuple[Float32Array | None, Float32Array | None]:
        """Return the vectors of a search's query and of its context.

        Args:
            scope: Whose speakers' names are replaced.
            search: The query.
            now: Microseconds since 1970 in UTC.
            index: Knows the speakers of the scope; None is that of all active memories.

        Raises:
            DeadlineExceededError: If the search's deadline passes before the embedder answers.
            EmbeddingError: If the embedder fails, or the memories are being embedded again.

        Returns:
            float32, shape (m, dim), and float32, shape (k, dim), one for each chunk of a long text;
            None where there is no query, no context, no embedder, or no weight.
        """
        if not search.uses_meaning:
            return None, None
        if self._is_waiting:
            raise EmbeddingError(
                "the memories are being embedded again, and can be found by keywords until that is "
                "complete; memory.reembed() waits for it"
            )
        given = None if search.vectors is None else self._given(search, search.vectors)
        if given is not None and search.has_hypotheses:
            given = self._with_hypotheses(given, scope, search, now, index)
        embedder = self._embedder
        if embedder is None or (search.vectors is not None and not search.compares_context):
            return given, None
        if given is not None:  # beside a context
            search = msgspec.structs.replace(search, also=())
        stored = given
        if given is None and search.like is not None:
            stored = self._stored(search.like, embedder)
        texts = self._texts(scope, search, now, index) if stored is None else []
        if search.context is None or search.ranking.weights.context == 0:
            own = self._embedded(texts, scope, search, now) if texts else [stored]
            return own[0] if len(own) == 1 else _combined(own, search), None
        *embedded, context = self._embedded([*texts, search.context], scope, search, now)
        return _combined(embedded if texts else [stored], search), context

    def _given(self, search: Search, vectors: Float32Array) -> Float32Array | None:
        """Return the search's own vectors, shape (m, dim); None if there is nothing to compare.

        Raises:
            DimensionMismatchError: If they have another dimension than those of the memories.
            EmbeddingModelMismatchError: If these come from another model.
        """
        model = search.vectors_model
        if model not in {None, self._model.name}:
            raise EmbeddingModelMismatchError(
                f"the query's vectors are of {model!r}, and those of the memories of "
                f"{self._model.name!r} now; recreate what embeds the queries"
            )
        is_comparable = self._model.check_query(vectors)
        # The index learns the dimension when it takes the first vectors in.
        if not is_comparable or self._active.own.model.known is None:
            return None
        return np.atleast_2d(vectors)

    def _with_hypotheses(
        self,
        given: Float32Array,
        scope: Scope,
        search: Search,
        now: int,
        index: NativeIndex | None,
    ) -> Float32Array:
        """Return one vector for that of a question and those of hypotheses behind it."""
        index = self._active.index if index is None else index
        by_question = Search(
            text=search.text,
            limit=FIRST_HITS,
            ranking=search.ranking,
            filters=search.filters,
            exclude=search.exclude,
            deadline=search.deadline,
            takes_partial=search.takes_partial,
        )
        by_meaning = msgspec.structs.replace(
            by_question, text=None, limit=NEAREST, ranking=SEMANTIC
        )
        first = index.rank(by_question, RankInputs(scope, now, given[:1])).ranked
        scores = {hit.row: max(0.0, hit.score) for hit in first}

        def evidence_of(vector: Float32Array) -> float:
            near = index.rank(by_meaning, RankInputs(scope, now, vector[None]))
            cosines = {hit.row: max(0.0, hit.score) for hit in near.ranked}
            most = max(cosines.values(), default=0.0) * max(scores.values(), default=0.0)
            found = [cosine * scores.get(row, 0.0) for row, cosine in cosines.items()]
            return max(found) / most if most > 0 else 0.0

        return joined(given, index.scale(scope, now).common, evidence_of)

    def similarity(self, row: int, text: str) -> float | None:
        """Return the largest cosine of a memory's vectors with a query's; None without vectors."""
        embedder = self._embedder
        stored = None if embedder is None else self._stored(row, embedder)
        if embedder is None or stored is None:
            return None
        given = embedder.embed_chunked([text], queries=True)[0]
        mine, theirs = (np.linalg.norm(rows, axis=1) for rows in (stored, given))
        lengths = mine[:, None] * theirs
        cosines = (stored @ given.T) / np.where(lengths > 0, lengths, 1)
        has_direction = (mine[:, None] >= MIN_NORM) & (theirs >= MIN_NORM)
        return float(np.where(has_direction, cosines, 0.0).max())

    def _embedded(self, texts: list[str], scope: Scope, search: Search, now: int) -> Vectors:
        """Return the vectors of texts; those that are not kept come from one call.

        No user's answers depend on the queries of another: what is kept is kept for each.
        """
        user = scope.user_id, scope.all_users
        embedded = {text: self._kept.get((*user, text)) for text in texts}
        missing = [text for text, vectors in embedded.items() if vectors is None]
        fresh: Vectors = []
        if missing and self._embedder is not None:
            with embedding(self._embedder):
                fresh = self._fresh(self._embedder, missing, search, now)
        for text, new in zip(missing, fresh, strict=True):
            embedded[text] = new
            if search.keeps_vectors:
                kept = new.copy()
                kept.flags.writeable = False
                self._kept.put((*user, text), kept)
        return [vectors for text in texts if (vectors := embedded[text]) is not None]

    def _fresh(
        self, embedder: ValidatedEmbedder, texts: list[str], search: Search, now: int
    ) -> Vectors:
        """Return new vectors of texts, by one call for all searches of one turn of an event loop.

        A search with a time limit waits for no other.
        """
        turn = current_turn()
        joins = turn is not None and search.deadline is None and embedder.joins_queries
        announced = turn.announced if turn is not None and joins else ()
        searches = [each for each in announced if isinstance(each, AnnouncedSearch)]
        beside = [each for each in searches if each.embeds is self]
        if turn is None or len(beside) < 2:  # noqa: PLR2004 - itself, and another one
            return embedder.queries_until(texts, search.deadline)
        shared = turn.only(self, lambda: TurnTexts(lambda: self._texts_of(beside, now)))
        return shared.embedded(texts, lambda every: embedder.queries_until(every, None))

    def _texts_of(self, announced: Sequence[AnnouncedSearch], now: int) -> list[str]:
        """Return the texts that searches without a time limit embed, and that are not kept."""
        found: list[str] = []
        for _, scope, given in announced:
            search = self.adapted(given)
            if search.needs_embedder and search.deadline is None and search.like is None:
                texts = self._texts(scope, search, now)
                has_context = search.ranking.weights.context > 0
                texts += [search.context] if search.context is not None and has_context else []
                user = scope.user_id, scope.all_users
                found += [text for text in texts if self._kept.get((*user, text)) is None]
        return found

    def _stored(self, row: int, embedder: ValidatedEmbedder) -> Float32Array | None:
        stored = self._store.read(VectorsOfRow(self._agent_id, row, embedder.model))
        return stored if len(stored) else None  # it may still lack them

    def _texts(
        self, scope: Scope, search: Search, now: int, index: NativeIndex | None = None
    ) -> list[str]:
        text = search.text
        if text is None or not search.ranking.has_similarity:
            return []
        if search.ranking.strip_speaker_names:
            index = self._active.index if index is None else index
            if index.summary().has_speakers:
                text = index.core.in_first_person(text, scope, now, search.deadline)
        return [text, *search.also]


def joined(
    vectors: Float32Array,
    common: Float32Array | None,
    evidence_of: Callable[[Float32Array], float],
) -> Float32Array:
    """Return a question's vector with the mean of hypotheses, each weighed by its agreement.

    That is its cosine with the question, at least 0, without the direction that all memories have
    in common, which texts share that have nothing to do with each other; and the evidence of the
    memories that it leads to beside the question. Hypotheses that disagree cancel each other out.
    See docs/project/lab/quality.md.

    Args:
        vectors: The question's, and those of hypotheses, shape (1 + m, dim).
        common: That direction, of any length; None where it is unknown.
        evidence_of: Returns how well the question finds what is near a vector, from 0 to 1.
    """
    whole = own = _directions(vectors)
    if common is not None:
        along = _directions(common)
        own = _directions(whole - np.outer(whole @ along, along))
    agreement = own[1:] @ own[0]
    beside = _directions(own[1:] - np.outer(agreement, own[0])).astype(np.float32)
    evidence = np.array([evidence_of(vector) for vector in beside])
    # Behind the question's words a guess agrees with it even where it is wrong, and a bare name
    # hardly does where it is right.
    weights = np.maximum(np.maximum(agreement, 0.0) * np.sqrt(evidence), evidence**4)
    found: Float32Array = (whole[:1] + weights @ whole[1:] / len(weights)).astype(np.float32)
    return found


def _directions(vectors: Array) -> Array:
    """Return vectors of length 1, float64, and those without a direction as they are."""
    lengths = np.linalg.norm(np.asarray(vectors, np.float64), axis=-1, keepdims=True)
    return vectors / np.where(lengths < MIN_NORM, 1.0, lengths)


def _combined(parts: Sequence[Float32Array | None], search: Search) -> Float32Array | None:
    """Return the vectors of a query and of texts of its meaning; None without any."""
    given = [vectors for vectors in parts if vectors is not None]
    if len(given) < 2:  # noqa: PLR2004 - a query, and something beside it
        return given[0] if given else None
    if search.blend is None:
        return np.concatenate(given)
    query, others = given[0].mean(axis=0), np.concatenate(given[1:]).mean(axis=0)
    blended: Float32Array = (1 - search.blend) * query + search.blend * others
    return blended[None]


def _bytes_of(query: Query, vectors: Float32Array) -> int:
    return 4 * (len(query[0] or "") + len(query[2])) + vectors.nbytes + _OVERHEAD
