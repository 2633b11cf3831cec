"""The option `language`: words are stemmed by its rules, or by those of each text's language."""

import msgspec
import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError
from mnemic.model.ranking import KEYWORD

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
