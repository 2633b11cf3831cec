"""What searches answer where little is certain: odd queries, changes, processes, threads, ends."""

# ruff: noqa: RUF001 - letters that look alike are the point

import asyncio
import json
import math
import subprocess
import sys
import threading
import time
from datetime import timedelta
from random import Random

import pytest

from mnemic import AsyncMemory, Memory, MemoryEntry
from mnemic.errors import InvalidArgumentError
from mnemic.model import HYBRID, KEYWORD, SEMANTIC, Ranking, SessionTerms, Weights
from mnemic.model.ranking import BY_SEARCH_TYPE, MOST_IMPORTANT, NEWEST
from mnemic.model.validation import MAX_QUERY_LENGTH
from tests.support.clock import DAY, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.entries import contents
from tests.support.processes import ENVIRONMENT
from tests.support.rankings import RECALL, WEIGHTED_RELEVANCE

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


@pytest.mark.parametrize("search_type", BY_SEARCH_TYPE)
def test_a_word_of_thousands_of_letters_is_a_word(memory, search_type):
    long = "a" * (MAX_QUERY_LENGTH - 10)
    memory.add_many([*TEXTS, f"tea {long}", "b" * 1_000_000])
    assert memory.search(long, search_type=search_type, limit=1)[0].content == f"tea {long}"


@pytest.mark.parametrize("search_type", BY_SEARCH_TYPE)
def test_a_word_that_is_said_again_and_again_changes_nothing_by_itself(memory, search_type):
    memory.add_many(TEXTS)
    once = memory.search("sofa", search_type=search_type)
    often = memory.search("sofa " * 100, search_type=search_type)
    assert contents(once) == contents(often)
    assert [hit.score for hit in often] == pytest.approx([hit.score for hit in once], abs=1e-6)


# Few or none


@pytest.mark.parametrize("door", DOORS)
def test_nothing_is_found_where_nothing_is_let_through(memory, door):
    assert DOORS[door](memory) == DOORS[door](memory, filters={"OR": []})
    memory.add_many([{"content": f"tea {number}", "tags": ["t"]} for number in range(50)])
    for where in (
        {"OR": []},
        {"tags": {"contains": "T"}},
        {"metadata.none": 1},
        {"id": {"in": []}},
        {"AND": [{"importance": {"gt": 0.5}}, {"importance": {"lte": 0.5}}]},
    ):
        assert len(DOORS[door](memory, filters=where)) == 0
    assert len(DOORS[door](memory, since=NOON, until=NOON)) == 0
    assert len(DOORS[door](memory, user_id="nobody")) == 0
    assert len(DOORS[door](memory, filters={"AND": []})) == 10


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


# Changes between searches


@pytest.mark.parametrize("door", DOORS)
def test_a_change_of_what_filters_look_at_is_seen_by_the_next_search(memory, door):
    kept = memory.add("tea", tags=["old"], metadata={"n": 1}, importance=0.25)
    memory.add("tea of another")

    def are_found(*wheres):
        return [len(DOORS[door](memory, filters=where)) for where in wheres]

    wheres = [
        {"tags": {"contains": "old"}},
        {"tags": {"contains": "new"}},
        {"metadata.n": 1},
        {"metadata.m": {"exists": True}},
        {"importance": 0.25},
        {"type": "preference"},
    ]
    assert are_found(*wheres) == [1, 0, 1, 0, 1, 0]
    memory.update(
        kept.id,
        add_tags=["new"],
        remove_tags=["old"],
        metadata={"m": None, "n": 2},
        importance=0.75,
        type="preference",
    )
    assert are_found(*wheres) == [0, 1, 0, 0, 0, 1]
    memory.update(kept.id, metadata={"m": 5})
    assert are_found({"metadata.m": {"exists": True}}, {"metadata.m": {"gte": 5.0}}) == [1, 1]
    memory.delete(kept.id)
    assert are_found(*wheres, {"metadata.m": 5}) == [0] * 7
    memory.restore(kept.id)
    assert are_found({"metadata.m": 5}, {"tags": {"contains": "new"}}) == [1, 1]
    memory.delete(kept.id, permanent=True)
    assert are_found({"metadata.m": 5}, {}) == [0, 1]


@pytest.mark.parametrize("door", DOORS)
def test_what_supersedes_another_takes_its_place(memory, door):
    old = memory.add("tea at noon")
    assert contents(DOORS[door](memory)) == ["tea at noon"]
    memory.add("tea at one", supersedes=old.id)
    assert contents(DOORS[door](memory)) == ["tea at one"]


@pytest.mark.parametrize("door", DOORS)
def test_a_memory_is_found_to_the_last_microsecond_before_it_expires(door):
    clock = Clock()
    with Memory(":memory:", embedder=WordEmbedder(), clock=clock) as memory:
        memory.add(MemoryEntry("tea", expires_at=NOON + DAY))
        for wait, count in [
            (timedelta(0), 1),
            (DAY - timedelta(microseconds=1), 1),
            (DAY, 0),
            (2 * DAY, 0),
            (timedelta(hours=1), 1),
        ]:
            clock.now = NOON + wait
            assert len(DOORS[door](memory)) == count


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


# Threads


class Watched(threading.Thread):
    """A thread that hands on what it failed with."""

    def __init__(self, work, *arguments):
        super().__init__()
        self.work, self.arguments, self.error = work, arguments, None

    def run(self):
        try:
            self.work(*self.arguments)
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            self.error = error

    def join(self, timeout=None):
        super().join(timeout)
        if self.error is not None:
            raise self.error


def test_threads_that_search_in_every_way_beside_writers_see_whole_answers(memory):
    staying = {entry.id for entry in memory.add_many([f"tea {at} stays" for at in range(40)])}
    is_done = threading.Event()

    def write(number):
        for turn in range(25):
            added = memory.add(f"tea {number} {turn} comes", tags=["one"], importance=0.25)
            memory.update(added.id, add_tags=["two"], importance=0.75)
            memory.delete(added.id, permanent=turn % 2 == 0)

    def search(door):
        while not is_done.is_set():
            found = DOORS[door](memory, limit=200)
            assert {hit.id for hit in found} >= staying
            scores = [hit.score for hit in found]
            assert scores == sorted(scores, reverse=True)
            coming = DOORS[door](memory, limit=200, filters={"tags": {"contains": "one"}})
            assert all(text.endswith("comes") for text in contents(coming))
            assert len(DOORS[door](memory, limit=40)) == 40

    writers = [Watched(write, number) for number in range(3)]
    readers = [Watched(search, door) for door in DOORS]
    for thread in (*writers, *readers):
        thread.start()
    try:
        for thread in writers:
            thread.join(60)
    finally:
        is_done.set()
    for thread in readers:
        thread.join(60)
    assert all({hit.id for hit in door(memory, limit=200)} == staying for door in DOORS.values())


# Parts of a score


class CosinesAsTheyAre(WordEmbedder):
    """Is calibrated, so that a cosine counts as it is shown."""

    def __init__(self):
        super().__init__()
        self.similarity_floor = 0.3
        self.score_floors = {"semantic": 0.3}


@pytest.fixture(scope="module")
def talk():
    """Return a memory of two sessions with speakers, questions and dates."""
    random = Random(3)  # noqa: S311 - repeatable, not secret
    words = ["ferry", "tea", "quay", "noon", "sofa", "red", "where", "museum"]
    with Memory(":memory:", embedder=CosinesAsTheyAre(), clock=Clock()) as opened:
        opened.add_many(
            [
                {
                    "content": " ".join(random.choices(words, k=5)) + random.choice(".?"),
                    "session_id": random.choice(["s", "t", None]),
                    "position": at,
                    "speaker": random.choice(["Ada", "Boris"]),
                    "created_at": NOON - random.randrange(40) * DAY,
                    "importance": random.random(),
                }
                for at in range(60)
            ]
        )
        yield opened


RANKINGS = {
    "hybrid": HYBRID,
    "semantic": SEMANTIC,
    "keyword": KEYWORD,
    "newest": NEWEST,
    "important": MOST_IMPORTANT,
    "weighted": WEIGHTED_RELEVANCE,
    "recall": RECALL,
    "everything": Ranking(
        similarity=0.5,
        session=SessionTerms(0.3, 0.2, 0.4, 0.1, 0.05, 0.2, 0.1),
        weights=Weights(0.5, 0.4, 0.3, 0.2, 0.1, 0.0),
    ),
}
QUERIES = ["where did Ada take the ferry?", "tea", "Boris at the museum last week", "no such word"]


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_score_is_the_weighted_mean_of_the_parts_that_are_told(talk, name, query):
    ranking = RANKINGS[name]
    found = talk.search(query, ranking=ranking, limit=100, explain=True)
    weights = {
        part: getattr(ranking.weights, part)
        for part in ranking.weights.__struct_fields__
        if getattr(ranking.weights, part) > 0
    }
    for hit in found:
        if hit.components["relevance"] in (0, 1):
            continue  # shown from 0 to 1, and counted as it is
        total = sum(weight * hit.components[part] for part, weight in weights.items())
        assert hit.score == pytest.approx(total / sum(weights.values()), abs=1e-9)
    if ranking.has_similarity:
        assert len(found) == 60


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_relevance_is_the_sum_of_its_parts_by_the_most_they_can_be(talk, name, query):
    ranking = RANKINGS[name]
    session = ranking.session
    hits = talk.search(query, ranking=ranking, limit=100, explain=True)
    most_of_speaker = max((hit.components.get("speaker", 0) for hit in hits), default=0)
    for hit in hits:
        parts = hit.components
        share = parts.get("share", 1.0)
        sum_of_parts = (
            share * parts.get("similarity", 0)
            + (1 - share) * parts.get("keyword", 0)
            + sum(
                parts.get(part, 0)
                for part in (
                    *("chunks", "neighbours", "question", "role", "date", "speaker"),
                    "answer_type",
                )
            )
        )
        most = 1.0
        if "neighbours" in parts:
            lifted = max(session.previous, session.next, session.answer) + session.second_neighbour
            most += max(lifted, session.isolated, session.min_lift)
        most += session.answer_type * ("answer_type" in parts)
        most += (session.date + session.date_inside) * ("date" in parts)
        most += most_of_speaker
        assert parts["relevance"] == pytest.approx(min(1, max(0, sum_of_parts / most)), abs=1e-6)


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
