"""What searches answer where little is certain: odd queries, changes, processes, threads, ends."""

# ruff: noqa: RUF001 - letters that look alike are the point

import asyncio
import json
import math
import subprocess
import sys
import time
from random import Random

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.errors import InvalidArgumentError
from mnemic.model.ranking import BY_SEARCH_TYPE
from mnemic.model.validation import MAX_QUERY_LENGTH
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder
from tests.support.entries import contents
from tests.support.processes import ENVIRONMENT

TEXTS = [
    "tea and milk",
    "the red sofa",
    "日本語の文章を書く",
    "an emoji 😀 here",
    "ferries at noon",
]
DOORS = {
    **{
        name: lambda memory, name=name, **options: memory.search("tea", search_type=name, **options)
        for name in BY_SEARCH_TYPE
    },
    "recent": lambda memory, **options: memory.recent(**options),
    "important": lambda memory, **options: memory.important(**options),
}


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder(), clock=Clock()) as opened:
        yield opened


# Odd queries

WITHOUT_WORDS = ("?!…", "😀🎉", "\u200b", "—", "()[]{}", "''", "%_*", "\ufffd", "`^")


@pytest.mark.parametrize("query", WITHOUT_WORDS)
def test_a_query_without_a_word_matches_no_keyword_and_as_many_by_meaning_as_wanted(memory, query):
    memory.add_many(TEXTS)
    assert contents(memory.search(query, search_type="keyword")) == []
    for search_type in ("hybrid", "semantic"):
        for limit in (1, 3, 9):
            found = memory.search(query, search_type=search_type, limit=limit)
            assert len(found) == min(limit, len(TEXTS))
            assert all(math.isfinite(hit.score) for hit in found)


@pytest.mark.parametrize("query", ["the", "the of and", "The, OF! and?", "to be or not to be"])
def test_stop_words_alone_are_words_like_others(memory, query):
    memory.add_many([*TEXTS, "to be or not to be, of the sea and the land"])
    found = memory.search(query, search_type="keyword")
    assert found[0].content == "to be or not to be, of the sea and the land"
    assert len(memory.search(query)) == len(TEXTS) + 1


@pytest.mark.parametrize("search_type", ["hybrid", "keyword"])
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("日本語", "日本語の文章を書く"),
        ("文章", "日本語の文章を書く"),
        ("文章とは何か", "日本語の文章を書く"),
        ("明天去公园", "我们明天去公园散步"),
        ("公园", "我们明天去公园散步"),
        ("한국어", "한국어 문장입니다"),
        ("ＴＥＡ", "tea and milk"),
        ("Œuvre", "une œuvre d'art"),
        ("STRASSE", "die lange Straße"),
    ],
)
def test_words_of_other_scripts_and_spellings_are_found(search_type, query, text):
    others = ["我们明天去公园散步", "한국어 문장입니다", "une œuvre d'art", "die lange Straße"]
    with Memory(":memory:", embedder=WordEmbedder(dimensions=4096)) as memory:
        memory.add_many([*TEXTS, *others])
        assert memory.search(query, search_type=search_type, limit=1)[0].content == text


@pytest.mark.parametrize("search_type", BY_SEARCH_TYPE)
def test_the_longest_query_finds_each_of_its_words(memory, search_type):
    numbers = range(0, 1600, 8)
    memory.add_many([*TEXTS, *(f"note w{number}" for number in numbers)])
    query = (" ".join(f"w{number}" for number in range(1600)) + " sofa" * 500)[:MAX_QUERY_LENGTH]
    found = memory.search(query, search_type=search_type, limit=500)
    of_notes = [hit for hit in found if hit.content.startswith("note ")]
    assert len(of_notes) == len(numbers)
    assert found == memory.search(query, search_type=search_type, limit=501)
    with pytest.raises(InvalidArgumentError, match="query must not exceed 10000 characters"):
        memory.search(query + "s", search_type=search_type)


# Few or none


@pytest.mark.parametrize("door", DOORS)
def test_limits_from_nothing_to_more_than_there_are(memory, door):
    memory.add_many([f"tea {number}" for number in range(12)])
    embedded = len(memory.embedder.texts)
    assert len(DOORS[door](memory, limit=0)) == 0
    assert len(memory.embedder.texts) == embedded, "a search for nothing embeds nothing"
    everything = DOORS[door](memory, limit=12)
    for limit in (1, 11, 12, 13, 10_000, 2**63, 10**30):
        assert DOORS[door](memory, limit=limit) == everything[:limit]
    assert len(everything) == 12


# Another process

CHILD = """
import json, sys
from mnemic import Memory
from tests.support.embedders import WordEmbedder
with Memory(sys.argv[1], embedder=WordEmbedder()) as memory:
    for line in sys.stdin:
        verb, arguments, options = json.loads(line)
        done = getattr(memory, verb)(*arguments, **options)
        print(json.dumps(str(getattr(done, "id", done))), flush=True)
"""


@pytest.fixture
def elsewhere(tmp_path):
    """Return a file, and what runs a verb on it in another process, which has it open all along."""
    path = tmp_path / "a.db"
    command = [sys.executable, "-c", CHILD, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ENVIRONMENT) as process:

        def run(verb, *arguments, **options):
            process.stdin.write(json.dumps([verb, arguments, options]).encode() + b"\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield path, run
        process.stdin.close()
    assert process.returncode == 0


def test_every_search_sees_what_another_process_wrote_just_before(elsewhere):
    path, run = elsewhere
    with Memory(path, embedder=WordEmbedder(), track_access=False) as memory:

        def found(**options):
            answers = [sorted(contents(search(memory, **options))) for search in DOORS.values()]
            assert answers == answers[:1] * len(DOORS)
            return answers[0]

        assert found() == []
        for turn in range(5):
            entry_id = run("add", f"tea {turn}", tags=["new"])
            assert found() == [f"tea {turn}"]
            assert found(filters={"tags": {"contains": "new"}}) == [f"tea {turn}"]
            run("update", entry_id, content=f"tea and milk {turn}", remove_tags=["new"])
            assert found() == [f"tea and milk {turn}"]
            assert found(filters={"tags": {"contains": "new"}}) == []
            run("delete", entry_id)
            assert found() == []
            run("restore", entry_id)
            assert found() == [f"tea and milk {turn}"]
            run("delete", entry_id, permanent=True)
            assert found() == []


# Cancelling


class SlowEmbedder(WordEmbedder):
    def embed(self, texts):
        time.sleep(0.002)
        return super().embed(texts)


@pytest.mark.parametrize("search_type", BY_SEARCH_TYPE)
def test_a_cancelled_search_ends_at_once_and_harms_no_other(search_type):
    random = Random(search_type)  # noqa: S311 - repeatable, not secret

    async def main():
        async with AsyncMemory(":memory:", embedder=SlowEmbedder()) as memory:
            await memory.add_many([f"tea {number}" for number in range(200)])
            expected = await memory.search("tea", search_type=search_type)
            outcomes = []
            # After no delay at all a search is cancelled however fast it is.
            for delay in [0, *(random.uniform(0, 0.003) for _ in range(39))]:
                task = asyncio.ensure_future(memory.search("tea", search_type=search_type))
                other = asyncio.ensure_future(memory.search("tea", search_type=search_type))
                await asyncio.sleep(delay)
                task.cancel()
                try:
                    outcomes.append(await task == expected)
                except asyncio.CancelledError:
                    outcomes.append(None)
                assert await other == expected
            assert None in outcomes
            assert False not in outcomes
            await memory.add("tea once more")
            assert len(await memory.search("tea", limit=300, search_type=search_type)) == 201

    asyncio.run(asyncio.wait_for(main(), 30))
