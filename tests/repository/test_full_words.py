"""The similarity of a turn of few words has a smaller share in its match."""

import math

import msgspec
import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError
from mnemic.model import HYBRID, KEYWORD, SEMANTIC, KeywordFields, Ranking, SessionTerms
from tests.support.embedders import WordEmbedder

NAME, STATEMENT = "Ada?", "Ada bought a lamp at the fair"
TEXTS = (NAME, STATEMENT, "?!", "вода и лампа на столе", "она")
SHARE = 0.25
FULL = msgspec.structs.replace(HYBRID, similarity=SHARE, full_words=4)


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as made:
        made.add_many(alone(TEXTS))
        yield made


def alone(texts):
    """Return turns of sessions in which nothing else was said."""
    return [{"content": text, "session_id": text} for text in texts]


def explained(memory, query, **options):
    return {hit.content: hit.components for hit in memory.search(query, explain=True, **options)}


def shares(memory, **options):
    parts = explained(memory, "Ada and вода", **options)
    return {content: part["share"] / SHARE for content, part in parts.items()}


def test_the_share_of_similarity_is_in_proportion_to_the_words(memory):
    found = shares(memory, ranking=FULL)
    assert found == {NAME: 1 / 4, STATEMENT: 1, "?!": 0, "вода и лампа на столе": 1, "она": 1 / 4}


def test_keywords_have_the_rest(memory):
    plain = msgspec.structs.replace(FULL, session=SessionTerms())
    for part in explained(memory, "Ada", ranking=plain).values():
        near, words, share = part.get("similarity", 0.0), part["keyword"], part["share"]
        largest = part["relevance"] and (share * near + (1 - share) * words) / part["relevance"]
        assert largest == pytest.approx(1) or part["relevance"] == 0


def test_a_name_alone_stands_behind_what_is_told_of_it(memory):
    cubed = Ranking(similarity=0.9, keywords=KeywordFields(exponent=3.0))
    for full_words, first in ((0, NAME), (4, STATEMENT)):
        ranking = msgspec.structs.replace(cubed, full_words=full_words)
        assert memory.search("Ada and her shop", ranking=ranking)[0].content == first


def test_the_share_is_that_of_the_language_too(memory):
    embedder = WordEmbedder()
    embedder.languages = {"en"}
    with Memory(":memory:", embedder=embedder) as english:
        english.add_many(alone(TEXTS))
        found = shares(english, ranking=FULL)
    assert found == shares(memory, ranking=FULL) | {"вода и лампа на столе": 0, "она": 0}


def test_a_changed_text_has_the_share_of_its_words(memory):
    (entry,) = [one for one in memory.list() if one.content == NAME]
    memory.update(entry.id, content="Ada is back")
    assert shares(memory, ranking=FULL)["Ada is back"] == 3 / 4


@pytest.mark.parametrize("preset", [SEMANTIC, KEYWORD])
def test_nothing_changes_where_similarity_is_all_or_nothing(memory, preset):
    query = "Ada and the lamp"
    given = msgspec.structs.replace(preset, full_words=9)
    found, plain = (memory.search(query, ranking=one, explain=True) for one in (given, preset))
    assert list(found) == list(plain)


@pytest.mark.parametrize("given", [-1, 1001, 2.5, True, "5", math.nan, None])
def test_a_number_of_words_is_checked(given):
    with pytest.raises(InvalidArgumentError, match="must be a whole number from 0 to 1000"):
        Ranking(full_words=given)


def test_an_empty_text_has_the_whole_share():
    embedder = WordEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add_many(alone(["Ada bought a lamp at the fair"]))
        for content in ("", "boat"):
            memory.add(
                {"content": content, "embed": "a boat in the harbour", "session_id": f"s{content}"}
            )
        found = shares(memory, ranking=FULL)
    assert found == {"Ada bought a lamp at the fair": 1, "": 1, "boat": 1 / 4}


def test_a_title_without_a_session_has_the_whole_share():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add("boat")
        memory.add("lamp", session_id="s")
        assert shares(memory, ranking=FULL) == {"boat": 1, "lamp": 1 / 4}
