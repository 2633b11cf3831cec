"""The option `language`: words are stemmed by its rules, or by those of each text's language."""

import asyncio

import msgspec
import pytest

from mnemic import Memory
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import InvalidArgumentError
from mnemic.model.ranking import KEYWORD
from tests.support.entries import entry

GERMAN = ["Die Häuser stehen an der Straße", "Wo hat der Hund das Brot gefunden?"]


def opened(language, contents=GERMAN, **scope):
    memory = Memory(":memory:", embedder=None, language=language)
    memory.add_many(contents, **scope)
    return memory


EXACTLY = msgspec.structs.replace(
    KEYWORD, keywords=msgspec.structs.replace(KEYWORD.keywords, fuzziness=0.0, char_ngrams=0.0)
)
"""By keywords without near spellings, which find other forms in any language."""


def found(memory, query, **scope):
    return [hit.content for hit in memory.search(query, ranking=EXACTLY, **scope)]


@pytest.mark.parametrize("language", ["auto", "de", "german"])
def test_german_words_are_found_in_other_forms(language):
    with opened(language) as memory:
        assert found(memory, "Haus") == GERMAN[:1]
        assert found(memory, "Hunde") == GERMAN[1:]


@pytest.mark.parametrize("language", ["en", None])
def test_another_language_stems_otherwise(language):
    with opened(language) as memory:
        assert found(memory, "Haus") == []


def test_languages_are_detected_unless_one_is_given():
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(GERMAN)
        assert found(memory, "Haus") == GERMAN[:1]


def test_a_few_words_are_in_the_language_of_most_memories():
    with opened("auto", ["Häuser"]) as memory:
        assert found(memory, "Haus") == []
        memory.add_many(GERMAN)
        assert set(found(memory, "Haus")) == {"Häuser", GERMAN[0]}


def test_a_query_reaches_memories_of_every_language():
    contents = ["Die Katzen mögen den Garten nicht", "The cats do not like the garden"]
    with opened("auto", contents) as memory:
        for query in ("Katze cat", "cat Katze", "wo ist die Katze oder cat", "where is the cat"):
            assert set(found(memory, query)) >= set(contents[1:]), query
        assert set(found(memory, "Katze cat")) == set(contents)


@pytest.mark.requirement("C198")
def test_languages_of_other_users_change_nothing():
    with opened("auto", ["Häuser", "running cats"], user_id="ann") as memory:
        before = memory.search("Haus cat", user_id="ann")
        memory.add_many(GERMAN * 20, user_id="bo")
        assert memory.search("Haus cat", user_id="ann") == before


def test_a_file_may_be_opened_with_another_language(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None, language="en") as memory:
        memory.add("Häuser")
        assert found(memory, "Haus") == []
    with Memory(tmp_path / "a.db", embedder=None, language="de") as memory:
        assert found(memory, "Haus") == ["Häuser"]


@pytest.mark.parametrize("language", ["ja", "zh", "th"])
def test_languages_without_spaces_have_no_stemmer_but_a_code(language):
    with opened(language, ["東京都に住む cats", "大阪"]) as memory:
        assert found(memory, "東京") == found(memory, "cat") == ["東京都に住む cats"]


@pytest.mark.parametrize("language", ["xx", "", "DE-de", "klingon"])
def test_an_unknown_language_raises_and_the_error_lists_the_codes(language, tmp_path):
    with pytest.raises(InvalidArgumentError, match=r'"auto" or one of ar, .*de, .*zh'):
        Memory(tmp_path / "a.db", embedder=None, language=language)
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize("language", [7, b"de", ["de"], "dé", "e" * 21])
def test_a_language_is_a_code(language):
    with pytest.raises(InvalidArgumentError, match="language must be a code"):
        Memory(":memory:", embedder=None, language=language)


def test_the_door_of_the_documents_has_it_too():
    async def stored_in(language):
        async with AsyncLongTermMemory(":memory:", embedder=None, language=language) as memory:
            return await memory.store(entry(agent_id="default"))

    assert asyncio.run(stored_in("de"))
    with pytest.raises(InvalidArgumentError, match="one of ar"):
        asyncio.run(stored_in("xx"))
