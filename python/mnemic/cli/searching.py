"""Verbs that find: search, context, contradictions."""

import argparse

from mnemic.cli.call import Call, declare_days, declare_filters, filters_of
from mnemic.cli.output import note
from mnemic.model import MemoryRecallResult, SearchResults


def declare_search(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of search."""
    parser.add_argument("query", nargs="+", help="words or a question")
    parser.add_argument("-n", "--limit", type=int, default=10, help="at most so many (10)")
    parser.add_argument("--why", action="store_true", help="show the parts of each score")
    parser.add_argument("--min-score", type=float, help="leave out hits below this score")
    declare_filters(parser)
    declare_days(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--keyword", action="store_const", const="keyword", dest="search_type")
    kind.add_argument("--semantic", action="store_const", const="semantic", dest="search_type")
    parser.set_defaults(search_type="hybrid")


def search(call: Call) -> None:
    """Print the memories found."""
    given = call.given
    # Words need no model, whose library takes a third of the time.
    memory = call.stored() if given.search_type == "keyword" else call.memory()
    found = memory.search(
        " ".join(given.query),
        limit=given.limit,
        search_type=given.search_type,
        min_score=given.min_score,
        filters=filters_of(given),
        explain=given.why,
        **call.scope,
    )
    _print_hits(call, found, found.table(call.out.width) if given.why else None)


def _print_hits(
    call: Call, found: SearchResults | MemoryRecallResult, table: str | None = None
) -> None:
    if call.out.is_json:
        for hit in found:
            call.out.json(hit.to_dict())
    elif table is not None:
        call.out.line(table)
    else:
        call.out.entries([hit.entry for hit in found], [f"{hit.score:.3f}" for hit in found])
    if found.hint is not None:
        note(found.hint)


def declare_context(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of context."""
    parser.add_argument("query", nargs="+", help="the question that a prompt is to answer")
    parser.add_argument("--tokens", type=int, help="at most so many tokens")
    parser.add_argument("-n", "--limit", type=int, help="at most so many memories")
    declare_days(parser)


def context(call: Call) -> None:
    """Print the block of a prompt."""
    given = call.given
    packed = call.memory().context(
        " ".join(given.query),
        max_tokens=given.tokens,
        limit=given.limit,
        since=given.since,
        until=given.until,
        **call.scope,
    )
    call.out.result(packed.to_dict(), str(packed))


def declare_contradictions(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of contradictions."""
    parser.add_argument("text", nargs="+", help="a statement")
    parser.add_argument("-n", "--limit", type=int, default=10, help="at most so many (10)")


def contradictions(call: Call) -> None:
    """Print the memories that a statement contradicts."""
    found = call.memory().contradictions(
        " ".join(call.given.text), limit=call.given.limit, **call.scope
    )
    _print_hits(call, found)
