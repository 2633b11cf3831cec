"""The contract of every index."""

from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mnemic.index.loading import Loader
from mnemic.model import Access, Expression, Order, Ranking, RowBatch, Scope
from mnemic.model.redacted import Redacted


class RankRequest(Redacted, frozen=True, kw_only=True, eq=False):
    """What to rank, and by what.

    Attributes:
        scope: Agent and user are walls, project and session filters.
        now: Microseconds since 1970 in UTC; what expired before is out.
        limit: How many at most.
        ranking: What a score is made of.
        text: What keywords, dates and speakers are looked for; None is no query.
        vectors: float32, shape (m, dim): the query, of several vectors the nearest counts; None
            where similarity has no share.
        context: float32, shape (m, dim): what memories near to are raised, or None; of several
            vectors the nearest counts.
        filters: Only rows that match.
        exclude: Not these, by the 16 bytes of their UUIDs.
        min_similarity: The least cosine, where negative ones count as 0; None is no floor.
        min_score: The least score; None is no floor.
        with_total: Whether to count all that match.
        order: In what order, where it is not that of the score.
        min_salience: The least salience; None is no floor.
        best_match: What matches are divided by before other parts of the score are added; 0 is the
            best match of the scope, None divides by nothing. Not where there is an order.
        explain: Whether all components are told, not only similarity and keyword.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"text", "filters"})

    scope: Scope
    now: int
    limit: int
    ranking: Ranking
    text: str | None = None
    vectors: NDArray[np.float32] | None = None
    context: NDArray[np.float32] | None = None
    filters: Expression | None = None
    exclude: Collection[bytes] = ()
    min_similarity: float | None = None
    min_score: float | None = None
    with_total: bool = False
    order: Order | None = None
    min_salience: float | None = None
    best_match: float | None = None
    explain: bool = True


class LinkSearch(Redacted, frozen=True, kw_only=True):
    """Which links to follow from where.

    Attributes:
        scope: Only memories of it are walked through, and found.
        now: Microseconds since 1970 in UTC; what expired before is out.
        row: Where to begin; it is not found itself.
        direction: "out" from it, "in" to it, or "both".
        kinds: The bits of the types of links.
        depth: Most links on a path, 1 to 3.
        limit: How many at most.
        filters: Only rows that match are found, and walked through; the first need not.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"filters"})

    scope: Scope
    now: int
    row: int
    direction: str
    kinds: int
    depth: int
    limit: int
    filters: Expression | None = None


class LinkedRow(NamedTuple):
    """A row that links lead to.

    Attributes:
        row: The store's integer.
        id: The UUID's 16 bytes.
        strength: The largest product of strengths of a path to it.
        kinds: The types of the links on that path, the first hop first.
    """

    row: int
    id: bytes
    strength: float
    kinds: tuple[int, ...]


class RankedRow(NamedTuple):
    """One row of an answer.

    Attributes:
        row: The store's integer.
        id: The UUID's 16 bytes.
        score: What the order is by, in float64: the score, or the key of `RankRequest.order`.
        components: The named parts of the score that are in play and were asked for.
    """

    row: int
    id: bytes
    score: float
    components: dict[str, float]


class RankedPage(NamedTuple):
    """What was found.

    Attributes:
        ranked: Best first.
        total: How many match; None unless it was asked for.
    """

    ranked: list[RankedRow]
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

    def raise_accesses(self, accesses: Sequence[Access]) -> None:
        """Note when and how often rows were read, all in one step.

        Unknown rows are passed over, and so is what is less than known: what `add_accesses` counted
        may not be in the store yet. A batch of changes takes no accesses away either.
        """
        ...

    def add_accesses(self, accesses: Sequence[Access]) -> None:
        """Count rows as read so many times more, all in one step; unknown rows are passed over."""
        ...

    def accesses(self, rows: Sequence[int]) -> list[tuple[int | None, int] | None]:
        """Return when each row was last read, and how often; None for unknown rows."""
        ...

    def unembedded(self) -> list[int]:
        """Return the rows that lack a vector, ascending."""
        ...

    def rank(self, wanted: RankRequest) -> RankedPage:
        """Return the best rows of a scope.

        Order: score, then newest, then smallest UUID, then the first user by name, nobody before
        all. The answer of a smaller limit is always the head of the answer of a larger one.
        """
        ...

    def linked(self, wanted: LinkSearch) -> tuple[list[LinkedRow], int]:
        """Return the rows that links lead to, and how many there are.

        Order: strength, then fewest hops, then newest, then smallest UUID, then first user. The row
        where to begin must be in the scope, and need not match the filter.
        """
        ...

    def related(
        self, query: str, texts: list[tuple[str, float]], scope: Scope, limit: int
    ) -> list[tuple[str, float]]:
        """Return words that belong to a query by what texts say, weighed by the user's rows.

        Statistics come from all rows of the scope's user, or of everybody where it has all users;
        its project and session do not narrow them.
        """
        ...

    def key_phrases(self, text: str, scope: Scope, limit: int) -> list[tuple[str, float]]:
        """Return phrases of a text that the user's rows hold, weighed as in `related`."""
        ...

    def next_expiry(self, scope: Scope, now: int) -> int | None:
        """Return the first time after now, in microseconds, at which a row of the user expires."""
        ...

    def in_first_person(self, text: str, scope: Scope, now: int) -> str:
        """Return a text with "I" and "my" for the names of a scope's speakers."""
        ...

    def __len__(self) -> int:
        """Return the number of rows, expired ones too."""
        ...
