"""Ranking by the proposals of an index's candidate source.

Where a selection is small, every memory is ranked.
"""

from collections.abc import Iterator

from mnemic.arrays import Int64Array, np
from mnemic.index import IndexSelection, NativeIndex, RankedPage, RankInputs
from mnemic.model.search import Search

EXACT_LIMIT = 200_000
"""Up to so many selected memories are all ranked."""

EXACT_SHARE = 0.02
"""Up to such a share of all memories is all ranked: a source would have to look at many more."""

PROPOSALS_PER_HIT = 4
MIN_PROPOSALS = 64
"""Proposals that a source is first asked for: so many for each hit, and at least this many."""

WIDENING = 4
"""Factor by which more proposals are requested if too few pass."""

MAX_REQUESTS = 3
"""Number of requests to a source, after which all memories are ranked."""


def rank(
    index: NativeIndex, search: Search, inputs: RankInputs, exact_limit: int = EXACT_LIMIT
) -> RankedPage:
    """Return the best rows of a scope, of those that the index's candidate source proposes.

    All selected rows are ranked if the source fails, if at most `exact_limit` rows or a fiftieth
    of all are selected, and if the proposals give fewer hits than the limit. A search that has an
    order of its own, counts all matches, or has no query vectors is exact too.

    Args:
        index: Ranks the rows; it has a source.
        search: The search.
        inputs: Its inputs.
        exact_limit: Up to so many selected rows are all ranked.

    Raises:
        DeadlineExceededError: If the deadline passes, and the search takes no partial answer.
    """
    limit = search.limit if inputs.limit is None else inputs.limit
    is_by_score = search.order is None and not search.with_total
    if limit > 0 and inputs.vectors is not None and is_by_score:
        few = max(exact_limit, int(EXACT_SHARE * len(index)))
        selected = index.selected(search, inputs, few)
        depth = limit + search.offset
        page = None if selected is None else _by_proposals(index, search, inputs, depth, selected)
        if page is not None:
            return page
    return index.rank(search, inputs)


def _by_proposals(
    index: NativeIndex, search: Search, inputs: RankInputs, depth: int, selected: IndexSelection
) -> RankedPage | None:
    """Return the best of the proposed rows; None if there may be too few of them.

    Args:
        index: Ranks the rows.
        search: The search.
        inputs: Its inputs.
        depth: Number of hits, those that the search skips included.
        selected: The rows that the search selects.
    """
    enough = min(depth, selected.size) - search.offset
    for proposed in _proposals(index, inputs, depth, selected):
        page = index.rank(search, inputs._replace(proposed=proposed))
        is_enough = page.weak or len(page.ranked) >= enough
        if is_enough or page.partial or not page.approximate:
            return page
    return None


def _proposals(
    index: NativeIndex, inputs: RankInputs, limit: int, selected: IndexSelection
) -> Iterator[Int64Array]:
    """Yield more and more proposals, as long as the source has as many as requested."""
    wanted = max(MIN_PROPOSALS, PROPOSALS_PER_HIT * limit)
    queries = [each for each in (inputs.vectors, inputs.context) if each is not None]
    for _ in range(MAX_REQUESTS):
        wanted = min(wanted, selected.size)
        parts = [index.nearest(vectors, wanted, selected.rows) for vectors in queries]
        found = [part for part in parts if part is not None and len(part) >= wanted]
        if len(found) < len(queries):
            return
        yield np.concatenate(found)
        if wanted == selected.size:
            return
        wanted *= WIDENING
