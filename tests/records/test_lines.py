"""What people see first: one line for every record, memory and service, without secrets."""

from uuid import UUID

import pytest

from mnemic import (
    AddedMemories,
    AsyncMemory,
    CheckedEntry,
    Memory,
    MemoryEntry,
    SearchHit,
    SearchResults,
    as_embedder,
)
from mnemic.compat import (
    AsyncLongTermMemory,
    AsyncMemoryRetriever,
    AsyncRetrievalService,
    ContextWindow,
)
from mnemic.errors import StoreFileError, StoreUnavailableError
from mnemic.hyde import TurnMemory
from mnemic.hyde.turn_memory import TurnMemories
from mnemic.model import (
    EmbeddingModel,
    MemoryPage,
    MemoryQuery,
    MemoryRecallResult,
    MemoryRetrievalResult,
    MemoryStatus,
    RankedMemory,
    RelevanceScores,
    ScoredMemory,
)
from mnemic.records import Listing
from mnemic.records.lines import cut, display_width
from mnemic.records.secrets import without_passwords
from tests.support.clock import NOON, SECOND
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry
from tests.support.records import RECORDS, sample

ID = "…000000000007"
SENSITIVE_LINE = "\n  0.250 <hidden>"


def memory(content="Likes tea", **fields):
    made = {"id": "00000000-0000-0000-0000-000000000007", "user_id": "alice", **fields}
    return MemoryEntry(agent_id="a", content=content, created_at=NOON, **made)


def ranked(*entries):
    return tuple(
        RankedMemory(one, 0.75, rank=at, scores=RelevanceScores())
        for at, one in enumerate(entries, start=1)
    )


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (memory(), f"MemoryEntry(id={ID}, content='Likes tea', user_id='alice')"),
        (memory(user_id=None), f"MemoryEntry(id={ID}, content='Likes tea')"),
        (
            memory(user_id=None, type="preference", forgotten_at=NOON),
            f"MemoryEntry(id={ID}, content='Likes tea', type='preference', is_forgotten=True)",
        ),
        (
            memory(sensitive=True, tags=["tea"], metadata={"tea": 1}, speaker="tea", role="tea"),
            f"MemoryEntry(id={ID}, content=<hidden>, user_id='alice', sensitive=True)",
        ),
        (
            CheckedEntry.of(memory(), (ScoredMemory(memory(), 1.0, "it quotes"),)),
            f"CheckedEntry(id={ID}, content='Likes tea', user_id='alice', contradictions=1)",
        ),
        (
            SearchHit(memory(), 0.52631, {"keyword": 1.0}),
            f"SearchHit(score=0.526, id={ID}, content='Likes tea', user_id='alice')",
        ),
        (
            ScoredMemory(memory(user_id=None, sensitive=True), 0.5, "tea"),
            f"ScoredMemory(score=0.500, id={ID}, content=<hidden>, sensitive=True)",
        ),
        (SearchResults([]), "SearchResults(0 hits)"),
        (
            SearchResults([], degraded=True, hint="name a user"),
            "SearchResults(0 hits, degraded=True, hint='name a user')",
        ),
        (
            SearchResults([SearchHit(memory(), 0.5, {}), SearchHit(memory(), 0.4, {})]),
            "SearchResults(2 hits:\n  0.500 'Likes tea'\n  0.400 'Likes tea')",
        ),
        (
            SearchResults([SearchHit(memory(sensitive=True), 0.5, {})], partial=True),
            "SearchResults(1 hit, partial=True: 0.500 <hidden>)",
        ),
        (
            SearchResults([SearchHit(memory(sensitive=at == 1), 0.5, {}) for at in range(5)]),
            (
                "SearchResults(5 hits:\n  0.500 'Likes tea'\n  0.500 <hidden>\n"
                "  0.500 'Likes tea'\n  … and 2 more)"
            ),
        ),
        (MemoryPage((memory(),), None), "MemoryPage(1 entry: 'Likes tea')"),
        (
            MemoryPage((memory(), memory()), "next"),
            "MemoryPage(2 entries, has_more=True:\n  'Likes tea'\n  'Likes tea')",
        ),
        (
            MemoryRecallResult((ScoredMemory(memory(), 0.5, "tea"),), 7, SECOND, approximate=True),
            "MemoryRecallResult(1 of 7 hits, approximate=True: 0.500 'Likes tea')",
        ),
        (
            MemoryRetrievalResult(
                results=ranked(memory()),
                total_matches=1,
                original_query="a query",
                from_cache=True,
                retrieval_time=SECOND,
            ),
            "MemoryRetrievalResult(1 hit, from_cache=True: 0.750 'Likes tea')",
        ),
        (AddedMemories(), "AddedMemories(0 entries)"),
        (
            AddedMemories([memory(), memory(sensitive=True)], [UUID(int=1)]),
            "AddedMemories(2 entries, evicted=1:\n  'Likes tea'\n  <hidden>)",
        ),
        (
            TurnMemories([TurnMemory(memory(sensitive=True), 0.25)] * 4),
            f"TurnMemories(4 hits:{3 * SENSITIVE_LINE}\n  … and 1 more)",
        ),
        (
            TurnMemory(memory(), 0.25, versions=(memory("Likes coffee"),)),
            f"TurnMemory(score=0.250, id={ID}, content='Likes tea', user_id='alice')",
        ),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_record_is_shown_on_one_line_and_a_list_by_its_first_three(record, line):
    assert repr(record) == line
    assert f"{record}" == line


HOSTILE = "tea\nand \x1b[31mred\x1b[0m \u202e\u2028 bread\t\x01" + "…" * 3


@pytest.mark.parametrize("content", [HOSTILE, "word " * 100_000, " " * 5_000 + "x", "茶" * 900])
def test_a_content_is_cut_to_one_printable_line(content):
    long = memory(content)
    for record in (long, SearchHit(long, 0.5, {}), SearchResults([SearchHit(long, 0.5, {})])):
        line = repr(record)
        assert line.isprintable()
        assert display_width(line) < 150


def test_a_text_that_fits_is_not_cut():
    assert cut("a " * 30, 60) == "a " * 29 + "a"
    assert cut("x" * 61, 60) == "x" * 59 + "…"
    assert cut("茶" * 30, 60) == "茶" * 30
    assert cut("茶" * 31, 60) == "茶" * 29 + "…"


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_public_record_is_shown_on_one_line(record):
    shown = repr(sample(record))
    assert shown.startswith(f"{record.__name__}(")
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "\n" not in shown or issubclass(record, Listing)


SECRET_URLS = [
    "postgresql://ann:s3cret@db.example/memories",
    "postgresql://ann:s3c/r:e@t/s3cret@db.example:5432/memories?sslmode=require",
    "postgresql://db.example/memories?user=ann&password=s3cret&sslmode=require",
    "https://s3cret@github.example/a.git",
    "https://example.org/files?x=1&access_token=s3cret#part",
    "redis://:s3cret@cache.example",
    "https://example.org/files?x-api-key=s3cret&x=1",
]


@pytest.mark.parametrize("url", SECRET_URLS)
def test_a_password_in_a_url_is_in_no_repr(url):
    one = memory(f"see {url} for it", source=url, metadata={"url": [url]}, tags=[url])
    hit = SearchHit(one, 0.5, {})
    records = (one, hit, SearchResults([hit]), MemoryPage((one,), None), EmbeddingModel(url, 3))
    for record in (*records, ScoredMemory(one, 0.5, url)):
        for shown in (repr(record), str(record), repr(record.__rich_repr__())):
            assert "s3cret" not in shown
            assert "s3c/r" not in shown
        assert "s3cret" not in getattr(record, "_repr_html_", str)()
    assert "s3cret" not in SearchResults([hit]).table()
    assert "s3cret" not in repr(as_embedder(len, model=url))
    with Memory(":memory:", embedder=None) as opened:
        opened.repository.shared.store.path = url
        for door in (opened, opened.aio, opened.scoped(user_id="u")):
            assert "s3cret" not in repr(door)


@pytest.mark.parametrize("part", ["a://b:", "://", "://?&token", "&token"])
def test_a_text_of_many_beginnings_of_urls_is_read_once(part):
    # A search that began again at each of them would take minutes, longer than a test may.
    text = part * 200_000
    assert without_passwords(text) == text
    assert without_passwords(f"x://y:z@{text}") == f"x://***@{text}"


@pytest.mark.parametrize("url", [*SECRET_URLS, "sqlite:///a.db?password=s3cret"])
def test_a_password_in_a_url_that_cannot_be_opened_is_not_in_the_error(url):
    with pytest.raises((StoreFileError, StoreUnavailableError)) as refused:
        Memory(url, embedder=None)
    assert "s3cret" not in str(refused.value)
    assert "s3c/r" not in str(refused.value)
    assert "://" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org:8080/a/b?x=1&y=2#z",
        "https://example.org/@ann/post?page=3",
        "see https://example.org and write to ann@example.org",
        "no password=here, as this is no URL",
    ],
)
def test_other_urls_are_shown_as_they_are(text):
    assert without_passwords(text) == text


def test_doors_and_services_show_path_scope_and_embedder(path):
    with Memory(path, "one", embedder=WordEmbedder()) as opened:
        place, model = repr(str(path)), f"embedder {opened.embedder.model!r}"
        assert repr(opened) == f"Memory({place}, agent 'one', no user, {model})"
        assert repr(opened.aio) == f"AsyncMemory({place}, agent 'one', no user, {model})"
        view = opened.scoped(user_id="u")
        assert repr(view) == f"ScopedMemory({place}, agent 'one', user 'u', {model})"
        assert repr(AsyncRetrievalService(view)) == "AsyncRetrievalService(agent 'one', user 'u')"
        assert repr(AsyncMemoryRetriever(opened)) == "AsyncMemoryRetriever(agent 'one', no user)"
    assert repr(opened).startswith("Memory("), "also after closing"
    with Memory(":memory:", embedder=None) as other:
        assert repr(other) == "Memory(':memory:', agent 'default', no user, no embedder)"


def test_a_repr_reads_nothing(path, monkeypatch):
    with Memory(path, embedder=WordEmbedder()) as opened:
        opened.add("Likes tea")
        opened.repository._store.close()
        path.unlink()
        monkeypatch.setattr(WordEmbedder, "embed", None)
        assert path.name in repr(opened)


def test_a_context_window_shows_its_size():
    window = ContextWindow(500, agent_id="aide")
    window.add("Likes tea", "user_message", token_count=4)
    assert repr(window) == "ContextWindow(1 item, 4 of 500 tokens, agent 'aide')"
    window.clear()
    assert repr(window) == "ContextWindow(0 items, 0 of 500 tokens, agent 'aide')"


def test_hits_and_entries_are_hashable():
    one, other = SearchHit(memory(), 0.5, {"a": 1.0}), SearchHit(memory(), 0.5, {"a": 1.0})
    assert one == other
    assert len({one, other, SearchHit(memory(), 0.4, {})}) == 2
    assert len({memory(), memory(), entry()}) == 2
    assert hash(SearchResults([one])) == hash(SearchResults([other]))
    assert {MemoryPage((memory(),), None): 1}[MemoryPage((memory(),), None)] == 1


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_every_record_is_hashable(kind):
    one, other = sample(kind), sample(kind)
    assert (hash(one) == hash(other)) or one != other


def test_equal_records_with_dicts_in_them_are_one_key():
    facts, goals = (MemoryQuery(filters={"type": kind}) for kind in ("fact", "event"))
    known = {facts: 1, goals: 2}
    assert known[MemoryQuery(filters={"type": "fact"})] == 1
    assert known[MemoryQuery(filters={"type": "event"})] == 2


def test_equal_entries_and_results_do_not_differ():
    for one, other in ((memory(), memory()), (SearchResults([]), SearchResults(()))):
        assert one == other
        assert not one != other  # noqa: SIM202 - the operator is the point
    assert memory() != memory("Likes bread")
    assert memory() != "Likes tea"
    assert SearchResults([]) != SearchResults([], partial=True)
    assert MemoryStatus.ACTIVE is memory().status
    assert AsyncMemory.__repr__ is AsyncLongTermMemory.__repr__
