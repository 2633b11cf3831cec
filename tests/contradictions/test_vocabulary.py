"""The tables of words are well formed, and every entry has an effect."""

import importlib.resources
import re
from collections import Counter
from decimal import Decimal

import pytest

from mnemic.contradictions import vocabulary
from mnemic.contradictions.tokens import tokens_of
from mnemic.contradictions.vocabulary import _phrase, lexicon, stem

DATA = importlib.resources.files("mnemic.contradictions") / "data"
TABLES = sorted(file.name.removesuffix(".txt") for file in DATA.iterdir())
WITH_PHRASES = ("attributes", "cues", "opposites", "qualifiers", "synonyms", "values", "words")
BY_SPELLING = {"stop words", "first person", "prepositions", "conjunctions"}
BY_SPELLING |= {"measure nouns", "light verbs", "auxiliaries", "lower limits", "state verbs"}


def lists(table):
    """Yield each list of a table with its name; the two ends of an axis are two lists."""
    if table == "opposites":
        for line in vocabulary.lines(table):
            for end in line.removeprefix("~ ").split(" / "):
                yield line, vocabulary.items(end)
        return
    yield from vocabulary.entries(table)


def spellings(table):
    return [text for _, members in lists(table) for member in members for text in member.split("|")]


def twice(values):
    return [value for value, times in Counter(values).items() if times > 1]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_a_comment_and_then_lists_of_words(table):
    assert (DATA / f"{table}.txt").read_text(encoding="utf-8").startswith("# ")
    assert list(vocabulary.lines(table))
    for name, members in lists(table):
        assert members, name
        for member in members:
            assert member == member.lower() == " ".join(member.split()), name
            assert re.fullmatch(r"[^,:|]+(\|[^,:|]+)*", member), name


@pytest.mark.parametrize("table", sorted(set(TABLES) - {"opposites"}))
def test_no_name_stands_twice(table):
    assert twice(name for name, _ in vocabulary.entries(table)) == []


@pytest.mark.parametrize("table", WITH_PHRASES)
def test_no_list_has_two_forms_of_a_word(table):
    for name, members in lists(table):
        if name not in BY_SPELLING:
            assert twice(map(_phrase, "|".join(members).split("|"))) == [], name
        assert twice(members) == [], name


def test_an_axis_has_two_ends():
    assert all(line.count(" / ") == 1 for line in vocabulary.lines("opposites"))


@pytest.mark.parametrize("table", WITH_PHRASES)
def test_a_phrase_is_found_in_a_text(table):
    phrases = [text for text in spellings(table) if " " in text or "-" in text]
    assert [text for text in phrases if len(tokens_of(f"Then {text}.")) != 3] == []


def test_a_word_has_one_synonym_by_which_it_is_known():
    others = [word for _, members in vocabulary.entries("synonyms") for word in members]
    assert twice(others) == []
    known = lexicon()._canonical
    assert all(word != key for word, key in known.items())
    assert len({token.lexeme.key for token in tokens_of("picture photographs image")}) == 1


def test_an_irregular_form_is_one_that_the_rules_do_not_lead_back():
    forms = [(form, base) for base, forms in vocabulary.entries("irregular") for form in forms]
    assert twice(form for form, _ in forms) == []
    assert all(form != base for form, base in forms)
    assert (stem("went"), stem("children"), stem("color")) == ("go", "child", stem("colours"))


def test_units_have_a_dimension_and_a_positive_factor():
    for unit, _ in vocabulary.entries("units"):
        _, factor = unit.split(" ")
        assert Decimal(factor) > 0


def test_cues_are_those_that_features_ask_for():
    names = {cue for name, _ in vocabulary.entries("cues") for cue in name.split()}
    assert names == {
        "past", "end", "gone", "present", "plan", "exception", "exclusive", "change", "replacement",
    }  # fmt: skip
