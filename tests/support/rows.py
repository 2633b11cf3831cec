"""What tests of the index share: records, batches of them, and what is wanted of them."""

from datetime import timedelta
from uuid import UUID

import msgspec
import numpy as np

from mnemic.index import RankInputs
from mnemic.model import SEMANTIC, MemoryEntry, Ranking, Scope
from mnemic.model.filter import Expression
from mnemic.model.ranking import Order
from mnemic.model.rows import RowBatch
from mnemic.model.search import CosineScale, EvidenceFloor, Search
from tests.support.clock import EPOCH
from tests.support.entries import to_row

NOW = 1_000_000
DIM = 2


def moment(microseconds):
    return EPOCH + timedelta(microseconds=microseconds)


def record(row, user=None, project=None, session=None, *, created_at=0, expires_at=None, **fields):
    """Return a row's record; the number is the row's id too, times are in microseconds."""
    entry = MemoryEntry(
        id=UUID(int=row),
        agent_id="a",
        user_id=user,
        project_id=project,
        session_id=session,
        created_at=moment(created_at),
        expires_at=None if expires_at is None else moment(expires_at),
        **{"content": f"memory {row}", **fields},
    )
    return (row, *to_row(entry))


def batch(records=(), *, since=None, seq=1, removed=(), vectors=None):
    """Return a batch in which each record has a vector; `vectors` names those of some, by row."""
    if vectors is None:
        vectors = {row: (1.0, row / 100) for row, *_ in records}
    values = np.array(list(vectors.values()), dtype=np.float32).reshape(len(vectors), DIM)
    return RowBatch(since, seq, list(records), list(vectors), values, list(removed))


class Question(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A search and the inputs of its ranking in one record; a relative search has a best match."""

    scope: Scope
    now: int
    limit: int
    ranking: Ranking
    text: str | None = None
    vectors: object = None
    context: object = None
    filters: Expression | None = None
    exclude: tuple = ()
    min_similarity: float | None = None
    min_score: float | None = None
    with_total: bool = False
    order: Order | None = None
    min_salience: float | None = None
    best_match: float | None = None
    explain: bool = True
    offset: int = 0
    with_reasons: bool = False
    evidence: EvidenceFloor | None = None
    scale: CosineScale | None = None

    @property
    def inputs(self):
        """What is given beside the search."""
        return RankInputs(
            self.scope, self.now, self.vectors, self.context, best_match=self.best_match or None
        )

    @property
    def search(self):
        """The search."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name in SEARCHED}
        exclude = tuple(UUID(bytes=one) for one in self.exclude)
        return Search(**given, exclude=exclude, is_relative=self.best_match is not None)


SEARCHED = frozenset(Search.__struct_fields__) - {"exclude", "context"}


def rank(index, question):
    return index.rank(question.search, question.inputs)


def wanted(scope, limit=100, *, query=(1, 0), now=NOW, ranking=SEMANTIC, **options):
    vectors = None if query is None else np.array([query], dtype=np.float32)
    given = {"scope": scope, "now": now, "limit": limit, "ranking": ranking, "vectors": vectors}
    return Question(**given, **options)


def rows_found(index, scope, limit=100, **options):
    return [ranked.row for ranked in rank(index, wanted(scope, limit, **options)).ranked]
