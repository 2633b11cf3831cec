"""Texts made to be slow to read: the work grows with their length, and queries have a bound.

What Python does is counted in lines; what compiled code does cannot be counted from here, so its
processor time is bounded very generously: sixteen times the text may take 128 times as long, and
would take 256 times as long if the time were quadratic.
"""

import asyncio
import time

import pytest

from benches.support.hostile_texts import FAMILIES
from mnemic import _core
from mnemic._core import MemoryIndex
from mnemic.compat import MemoryRetriever, RetrievalService
from mnemic.demo.run import read
from mnemic.embed.chunking import Chunker
from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryQuery, Scope
from mnemic.retrieval.expansion import CorpusExpander, Related, terms_of
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.places import SEARCHED, STORES
from tests.support.work import lines_run

SHORT, LONG = 16_000, 256_000
GENEROUS = 16 * 8
LEAST = 0.002  # seconds; less is mostly what the clock and the machine add


async def nothing(_text):
    return Related([], 0.0)


def related(text):
    return MemoryIndex(None).related("tea", [(text, 1.0)], Scope("a"), 5)


NATIVE = {
    "fingerprint": _core.fingerprint,
    "fold": _core.fold,
    "estimate_tokens": _core.estimate_tokens,
    "date_ranges": lambda text: _core.date_ranges(text, 0),
    "related": related,
    "key_phrases": lambda text: MemoryIndex(None).key_phrases(text, Scope("a"), 5),
    "in_first_person": lambda text: MemoryIndex(None).in_first_person(text, Scope("a"), 0),
    "chunks": Chunker(256).chunks,
    "expansion": lambda text: asyncio.run(CorpusExpander().expand(text, nothing)),
    "terms of an answer": lambda text: terms_of(text, "tea"),
}
SLOWEST = ("different words", "repeated clause", "run of Thai", "one letter, then combining marks")


def processor_time(call, text):
    taken = []
    for _ in range(2):
        begin = time.process_time()
        call(text)
        taken.append(time.process_time() - begin)
    return max(min(taken), LEAST)


@pytest.mark.parametrize("family", SLOWEST)
@pytest.mark.parametrize("name", NATIVE)
def test_compiled_code_reads_any_text_in_less_than_quadratic_time(name, family):
    short, long = (processor_time(NATIVE[name], FAMILIES[family](size)) for size in (SHORT, LONG))
    assert long < GENEROUS * short


def read_as(name, folder):
    def call(text):
        path = folder / name
        path.write_text(f"{text}\nend", "utf-8")
        return read(path)

    return call


@pytest.mark.parametrize("family", FAMILIES)
def test_the_work_of_reading_grows_with_the_length_of_a_text_and_not_faster(family, tmp_path):
    calls = {
        "chunks": Chunker(64).chunks,
        "terms": lambda text: terms_of(text, "tea"),
        **{name: read_as(name, tmp_path) for name in ("a.txt", "a.md", "a.jsonl")},
    }
    for name, call in calls.items():
        short, long = (
            lines_run(lambda call=call, size=size: call(FAMILIES[family](size)))
            for size in (2_000, 8_000)
        )
        assert long <= 6 * short + 200, name


def test_a_file_of_blank_lines_or_hash_signs_is_read_in_linear_time(tmp_path):
    for name, text in (
        ("a.txt", "a" + "\n " * 200_000),
        ("a.md", "# a" + " #" * 200_000),
        ("a.md", "# a" + " " * 200_000 + "b"),
        ("a.txt", "word" * 500_000),
    ):
        call = read_as(name, tmp_path)
        assert processor_time(call, text) < GENEROUS * processor_time(call, text[: len(text) // 16])


LONGEST = "tea " * 2_500
TOO_LONG = LONGEST + "x"


@pytest.mark.parametrize("places", SEARCHED, indirect=True)
def test_a_query_of_ten_thousand_characters_is_answered_and_a_longer_one_refused(places):
    with places.opened(embedder=WordEmbedder()) as memory:
        memory.add("tea with milk")
        retriever, service = MemoryRetriever(memory), RetrievalService(memory)
        calls = {
            "search": memory.search,
            "keyword search": lambda query: memory.search(query, search_type="keyword"),
            "recall": memory.recall,
            "context": memory.context,
            "retrieve": lambda query: memory.retrieve(MemoryQuery(query=query)),
            "retriever": lambda query: retriever.recall(query, user_id=None),
            "topic": lambda query: retriever.recall_temporal(
                NOON, NOON, user_id=None, topic_filter=query
            ),
            "expand": service.expand_query,
        }
        for name, call in calls.items():
            call(LONGEST)
            refused = False
            try:
                call(TOO_LONG)
            except InvalidArgumentError as error:
                refused = "must not exceed 10000 characters" in str(error)
            assert refused, name


@pytest.mark.parametrize("places", STORES, indirect=True)
def test_of_a_long_conversation_the_end_is_read(places):
    with places.opened(embedder=None) as memory:
        memory.add_many(["the harbour froze", "a violin lesson"])
        service = RetrievalService(memory)
        spoken = "the violin. " + "hm. " * 5_000 + "the harbour"
        assert service.suggest_queries(spoken) == ["harbour"]


@pytest.mark.parametrize("places", STORES, indirect=True)
def test_a_statement_of_any_length_is_looked_for_by_its_beginning(places):
    with places.opened(embedder=None) as memory:
        memory.add("The harbour has 3 boats")
        (found,) = memory.contradictions("The harbour has 4 boats. " + "Hm. " * 50_000)
        assert found.memory.content == "The harbour has 3 boats"


def test_dates_are_looked_for_in_as_much_text_as_a_query_has():
    assert len(_core.date_ranges("3 May 2023, " * 900, 0)) == len(
        _core.date_ranges("3 May 2023, " * 834, 0)
    )
