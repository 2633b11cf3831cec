"""Searches that the options of a recall describe."""

from mnemic.model import SEMANTIC, Expression, MemoryStatus, Ranking, RecallOptions
from mnemic.model.filter import All, Field, Op, Test
from mnemic.model.ranking import Order
from mnemic.model.recall import parse_types
from mnemic.model.rows import State
from mnemic.model.search import Search
from mnemic.reporting.description import must_be, quoted


def search_of(
    options: RecallOptions,
    *tests: Expression,
    order: Order | None = None,
    ranking: Ranking = SEMANTIC,
) -> Search:
    """Return the search that options and further tests describe."""
    states, statuses = _states(options)
    return Search(
        text=None,
        limit=options.max_results,
        ranking=ranking,
        filters=All((statuses, *filters_of(options), *tests)),
        with_total=options.with_total,
        order=order,
        min_salience=options.min_salience or None,
        states=states,
        explain=True,
    )


def filters_of(options: RecallOptions) -> list[Expression]:
    """Return the tests of type and project."""
    tests: list[Expression] = []
    if options.type_filter is not None:
        types = tuple(int(each) for each in parse_types(options.type_filter))
        tests.append(Test(Field("type"), Op.IN, types))
    if names_project(options):
        tests.append(Test(Field("project_id"), Op.EQ, options.project_id))
    return tests


def names_project(options: RecallOptions) -> bool:
    """Return whether the project is tested; None is the memories without one, if it is strict."""
    return options.project_id is not None or options.project_scope == "strict"


def statuses_of(options: RecallOptions) -> list[MemoryStatus]:
    """Return the statuses of the recalled memories."""
    wanted = [MemoryStatus.ACTIVE]
    if options.include_archived:
        wanted.append(MemoryStatus.ARCHIVED)
    if options.include_superseded:
        wanted.append(MemoryStatus.SUPERSEDED)
    return wanted


def uses_store(options: RecallOptions) -> bool:
    """Return whether links are followed in the store: the index has those of active memories."""
    return len(statuses_of(options)) > 1 or bool(options.min_salience)


def _states(options: RecallOptions) -> tuple[tuple[State, ...], Expression]:
    """Return the states of the searched memories, and the test of their status."""
    wanted = statuses_of(options)
    if len(wanted) == 1:
        return (State.ACTIVE,), All(())
    statuses = tuple(int(status) for status in wanted)
    return (State.ACTIVE, State.INACTIVE), Test(Field("status"), Op.IN, statuses)


def check_record(field: str, given: object, kind: type) -> None:
    """Check that an optional record is of its kind."""
    if given is not None and not isinstance(given, kind):
        raise must_be(field, kind.__name__, given, show=quoted)
