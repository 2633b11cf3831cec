"""The contract of every index."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.index.loading import Loader
from mnemic.model import Access, Expression, Ranking, RowBatch, Scope


class Wanted(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What to rank, and by what.

    Attributes:
        scope: Agent and user are walls, project and session filters.
        now: Microseconds since 1970 in UTC; what expired before is out.
        limit: How many at most.
        ranking: What a score is made of.
        text: What keywords, dates and speakers are looked for; None is no query.
        vectors: float32, shape (m, dim): the query, of several vectors the nearest counts; None
            where similarity has no share.
        context: float32, shape (dim,): what memories near to are raised, or None.
        where: Only rows that match.
        exclude: Not these, by the 16 bytes of their UUIDs.
        min_similarity: The least cosine, where negative ones count as 0; None is no floor.
        min_score: The least score; None is no floor.
        with_total: Whether to count all that match.
        explain: Whether all components are told, not only similarity and keyword.
    """

    scope: Scope
    now: int
    limit: int
    ranking: Ranking
    text: str | None = None
    vectors: NDArray[np.float32] | None = None
    context: NDArray[np.float32] | None = None
    where: Expression | None = None
    exclude: Collection[bytes] = ()
    min_similarity: float | None = None
    min_score: float | None = None
    with_total: bool = False
    explain: bool = True


class Ranked(NamedTuple):
    """One row of an answer.

    Attributes:
        row: The store's integer.
        id: The UUID's 16 bytes.
        score: What the order is by, in float64.
        components: The named parts of the score that are in play and were asked for.
    """

    row: int
    id: bytes
    score: float
    components: dict[str, float]


class Answer(NamedTuple):
    """What was found.

    Attributes:
        ranked: Best first.
        total: How many match; None unless it was asked for.
    """

    ranked: list[Ranked]
    total: int | None


class Index(Protocol):
    """Ranks one agent's rows. Safe to search from many threads while one applies changes."""

    @property
    def seq(self) -> int | None:
        """The change number it stands at; None before it was loaded."""
        ...

    def loader(self) -> Loader:
        """Return what takes a whole batch while it is read."""
        ...

    def apply(self, batch: RowBatch, loader: Loader | None = None) -> bool:
        """Take in a batch of changes; return False if it does not follow where the index stands.

        Args:
            batch: The changes.
            loader: What took it, if the batch is everything.
        """
        ...

    def set_accesses(self, accesses: Sequence[Access]) -> None:
        """Note when and how often rows were read, all in one step; unknown rows are passed over."""
        ...

    def unembedded(self) -> list[int]:
        """Return the rows that lack a vector, ascending."""
        ...

    def rank(self, wanted: Wanted) -> Answer:
        """Return the best rows of a scope.

        Order: score, then newest, then smallest UUID (C164). The answer of a smaller limit is
        always the head of the answer of a larger one (C193).
        """
        ...

    def in_first_person(self, text: str, scope: Scope, now: int) -> str:
        """Return a text with "I" and "my" for the names of a scope's speakers."""
        ...

    def __len__(self) -> int:
        """Return the number of rows, expired ones too."""
        ...
