import pytest

from mnemic.errors import FilterError, InvalidArgumentError
from mnemic.memory import Memory
from mnemic.model import MemoryFilter, MemorySortOrder
from tests.support.clock import HOUR, NOON
from tests.support.doors import run
from tests.support.entries import contents, entry


async def pages(memory, **options):
    found, cursor = [], None
    while True:
        page = await memory.list(cursor=cursor, **options)
        found.append(contents(page))
        assert len(page) == len(page.entries)
        if page.cursor is None:
            return found
        cursor = page.cursor


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_ties_are_neither_repeated_nor_left_out(limit):
    async def scenario(memory):
        entries = [entry(f"{at}") for at in range(10)]
        await memory.store_batch(entries)
        listed = [text for page in await pages(memory, limit=limit) for text in page]
        by_id = sorted(entries, key=lambda one: one.id)
        assert listed == contents(by_id)

    run(scenario)


def test_a_list_is_inside_its_scopes_and_its_filter():
    async def scenario(memory):
        await memory.store_batch(
            [
                entry("a1", user_id="a", tags=["x"]),
                entry("a2", user_id="a", created_at=NOON - HOUR),
                entry("b", user_id="b", created_at=NOON - 2 * HOUR),
                entry("nobody", created_at=NOON - 3 * HOUR),
            ]
        )
        assert await pages(memory, limit=1, user_id="a") == [["a1"], ["a2"]]
        assert await pages(memory) == [["nobody"]]
        assert await pages(memory, limit=3, all_users=True) == [["a1", "a2", "b"], ["nobody"]]
        assert await pages(memory, filters={"tags": {"contains": "x"}}, user_id="a") == [["a1"]]
        fields = MemoryFilter(
            tags=["x"], limit=1, offset=5, sort_by=MemorySortOrder.CREATED_ASCENDING
        )
        assert await pages(memory, filters=fields, user_id="a") == [["a1"]]
        page = await memory.list(limit=1, user_id="a")
        assert contents(await memory.list(cursor=page.cursor, user_id="b")) == ["b"]

    run(scenario)


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "é", 7, b"AAAA", "A" * 36])
def test_a_cursor_that_no_page_gave_is_refused(cursor):
    message = "cursor must be one that an earlier page"
    with (
        Memory(":memory:", embedder=None) as memory,
        pytest.raises(InvalidArgumentError, match=message),
    ):
        memory.list(cursor=cursor)


def test_a_limit_or_filter_that_cannot_be_is_refused():
    with Memory(":memory:", embedder=None) as memory:
        for limit in (0, 1001, True, 2.0):
            with pytest.raises(InvalidArgumentError, match="limit must be an int from 1 to 1000"):
                memory.list(limit=limit)
        with pytest.raises(FilterError):
            memory.list(filters={"colour": "red"})


def test_forgotten_ones_are_listed_only_when_asked_for():
    with Memory(":memory:", embedder=None) as memory:
        kept = memory.add("tea", user_id="a")
        memory.delete(kept.id, user_id="a")
        assert len(memory.list(user_id="a")) == 0
        assert memory.list(user_id="a", include_deleted=True).entries == (
            memory.scoped(user_id="a").list(include_deleted=True).entries[0],
        )
        assert len(memory.list(filters=MemoryFilter(include_forgotten=True), user_id="a")) == 1


def test_times_before_1970_and_the_last_year_have_cursors():
    with Memory(":memory:", embedder=None) as memory:
        for year in (1, 1969, 9999):
            memory.add(f"{year}", created_at=f"{year:04}-01-01")
        first = memory.list(limit=1)
        second = memory.list(limit=1, cursor=first.cursor)
        third = memory.list(limit=1, cursor=second.cursor)
        assert [contents(page) for page in (first, second, third)] == [["9999"], ["1969"], ["1"]]
