"""Passages: long memories are found by the best of their parts, and tell which it is."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory
from mnemic._core import passage
from mnemic.embed import as_embedder
from mnemic.embed.chunking import Chunker
from mnemic.repository.searching import Searcher
from tests.support.places import SEARCHED, Places
from tests.support.sealing import encryption

QUERY = "Where did Marta hide the spare key of the blue boat?"
ANSWER = "Marta could hide the spare key of the blue boat under a plank of the jetty."
NAMED = ("Marta", "hide", "spare", "key", "blue", "boat")
OTHERS = [
    "market",
    "train",
    "weather",
    "river",
    "window",
    "coffee",
    "letter",
    "doctor",
    "mountain",
    "paper",
    "street",
    "music",
    "table",
    "bread",
    "winter",
    "evening",
    "morning",
    "office",
    "phone",
    "station",
    "bridge",
    "cousin",
    "holiday",
    "museum",
    "forest",
    "engine",
    "budget",
]

any_text = st.text(
    st.one_of(
        st.sampled_from("ab. .!? \n漢字。e\u0301😀👩\u200dIA1…  "),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=80,
)


def sentences(random, words):
    made = []
    while words > 0:
        said = random.choices(OTHERS, k=random.randint(6, 12))
        made.append(f"The {' of the '.join(said)}.")
        words -= 3 * len(said)
    return made


def long_text(random, words):
    half = sentences(random, words // 2)
    return " ".join([*half, ANSWER, *sentences(random, words // 2)])


def short_texts(random, named):
    return [
        f"Note {at}: {' '.join([*random.sample(OTHERS, 3), *random.sample(NAMED, named)])}"
        for at in range(200)
    ]


@pytest.mark.parametrize("options", [{}, {"embedder": None}], ids=["MiniLM", "keywords"])
@pytest.mark.parametrize(
    ("words", "named"), [(800, 1), (800, 2), (3000, 1), (3000, 2), (12_000, 1)]
)
def test_a_long_text_that_alone_has_all_the_words_is_first(options, words, named):
    random = Random(words + named)  # noqa: S311 - texts, no secrets
    content = long_text(random, words)
    with Memory(":memory:", **options) as memory:
        memory.add(content)
        memory.add_many(short_texts(random, named))
        first = memory.search(QUERY)[0]
        assert first.content == content
        start, end = first.passage.span
        assert content[start:end] == first.passage.text
        assert ANSWER in first.passage.text
        assert set(NAMED) <= set(first.passage.words)


def test_short_memories_and_searches_without_a_query_have_no_passage():
    with Memory(":memory:", embedder=None) as memory:
        memory.add("tea " * 250)
        memory.add(ANSWER)
        assert [hit.passage for hit in memory.search(QUERY)] == [None]
        assert [hit.passage for hit in memory.search("tea")] == [None]
        memory.add("A cup of tea. " * 100)
        assert memory.recent()[0].passage is None
        assert [hit.passage is None for hit in memory.search("cup")] == [False]


def test_a_context_looks_for_the_passages_of_what_it_cites_alone(monkeypatch):
    searched = []
    monkeypatch.setattr(Searcher, "_passage", lambda *_: searched.append(1))
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many([f"Cup {at}. " + "It has tea. " * 120 for at in range(20)])
        context = memory.context("tea")
    assert 0 < len(context.hits) < 20
    assert searched == []


def colours(texts):
    """Return vectors of the colours that texts name."""
    named = [[word in text for word in ("red", "green", "blue")] for text in texts]
    return np.array([[*one, not any(one)] for one in named], np.float32)


def test_without_a_word_in_common_the_passage_begins_with_the_nearest_part():
    named = ("red", "green", "blue")
    parts = [f"{colour} is said here, and nothing else of it. " for colour in named]
    embedder = as_embedder(colours, model="colours", max_tokens=100)
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("".join(part * 12 for part in parts))
        for colour in named:
            found = memory.search(vector=colours([colour])[0], search_type="semantic")
            assert colour in found[0].passage.text
            assert found[0].passage.words == ()


def test_a_chunk_has_the_span_of_its_place_among_the_chunks():
    chunker = Chunker(max_tokens=20)
    for text in ("one two three. " * 40, "\n" * 70 + "a b c. " * 30, "short"):
        chunks = chunker.chunks(text)
        spans = [chunker.span(text, at) for at in range(len(chunks) + 1)]
        if len(chunks) == 1:
            assert spans == [None, None]
        else:
            assert [text[start:end] for start, end in spans[:-1]] == chunks
            assert spans[-1] is None


@given(any_text, any_text, st.integers(1, 30), st.tuples(st.integers(0, 90), st.integers(0, 90)))
def test_any_passage_is_a_part_of_its_text(text, query, tokens, near):
    start, end, _ = passage(text, query, tokens, near)
    assert 0 <= start <= end <= len(text)
    assert (start < end) == bool(text)


@pytest.mark.parametrize(
    "unit", ["a", "\n", ". ", "a. ", "\u0301", "tea cup ", "漢", "a\n", "👩\u200d"]
)
def test_a_megabyte_is_read_in_time(unit):
    text = (unit * 1_000_000)[:1_000_000]
    for tokens in (1, 100, 2**40):
        start, end, _ = passage(text, "tea a 漢", tokens)
        assert start < end


LONG = " ".join(sentences(Random(7), 900)) + f" {ANSWER}"  # noqa: S311 - as above
SHORT = "The blue boat is old."


def hits_of(memory, query, **options):
    """Return the hits of each door that searches by a query."""
    doors = (memory.search, memory.retrieve, memory.recall)
    return [list(door(query, **options)) for door in doors]


def by_content(hits):
    return {hit.content: hit.passage for hit in hits}


@pytest.fixture(params=SEARCHED)
def places(request, tmp_path):
    with Places(request.param, tmp_path) as places:
        yield places


@pytest.mark.parametrize("sealed", [{}, {"encryption": encryption()}], ids=["plain", "sealed"])
def test_every_door_has_the_same_passages_in_every_store(places, sealed):
    with Memory(":memory:", embedder=colours_of_words()) as other:
        other.add(LONG, user_id="ana")
        (wanted,) = [hit.passage for hit in other.search(QUERY, user_id="ana")]
    assert ANSWER in wanted.text
    url = places.new()
    for _ in range(2):  # as it is stored, and read again
        with Memory(url, embedder=colours_of_words(), **places.options, **sealed) as memory:
            if not memory.count(user_id="ana"):
                memory.add(LONG, user_id="ana")
                memory.add(SHORT, user_id="ana")
                memory.add(LONG.replace("plank", "stone"), user_id="ben")
            for hits in hits_of(memory, QUERY, user_id="ana"):
                passages = by_content(hits)
                assert passages[LONG] == wanted
                assert passages.get(SHORT) is None
                assert "stone" not in repr(hits)


def colours_of_words():
    """Return an embedder of chunks whose vectors all lie near to each other."""
    return as_embedder(lambda texts: colours(texts) + 1, model="colours", max_tokens=100)


def test_every_door_names_the_part_that_is_nearest_though_no_word_is_shared():
    embedder = as_embedder(
        lambda texts: colours([text.replace("crimson", "red") for text in texts]),
        model="colours",
        max_tokens=100,
    )
    parts = [f"{colour} is said here, and nothing else of it. " for colour in ("green", "red")]
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("".join(part * 15 for part in parts))
        for (hit,) in (*hits_of(memory, "crimson"), memory.retrieve("crimson")):
            assert "red is said here" in hit.passage.text
            assert hit.passage.words == ()


def test_a_kept_result_has_the_passages_of_its_query(monkeypatch):
    with Memory(":memory:", embedder=colours_of_words()) as memory:
        memory.add(LONG)
        first, second = (memory.retrieve(QUERY) for _ in range(2))
        assert (first.from_cache, second.from_cache) == (False, True)
        assert second[0].passage == first[0].passage is not None
        monkeypatch.setattr(Searcher, "_passage", None)  # a call would fail
        assert [hit.passage for hit in memory.recall("", mode="important")] == [None]


def test_passages_of_sensitive_memories_are_hidden_by_every_door():
    with Memory(":memory:", embedder=colours_of_words()) as memory:
        memory.add(LONG, sensitive=True)
        for (hit,) in hits_of(memory, QUERY):
            assert "plank" in hit.passage.text
            assert "plank" not in f"{hit!r}{hit.passage!r}"
            assert "Marta" not in f"{hit!r}{hit.passage!r}"


def test_contents_and_the_query_for_each_of_them_count_in_what_is_read_for_passages(monkeypatch):
    bound = len(LONG) + len(QUERY)
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many([LONG, LONG.replace("plank", "stone")])
        for most, wanted in [(bound, 1), (2 * bound, 2), (bound - 1, 0)]:
            monkeypatch.setattr("mnemic.repository.searching.MOST_READ", most)
            passages = [hit.passage for hit in memory.search(QUERY)]
            assert [one is not None for one in passages] == [True] * wanted + [False] * (2 - wanted)
