"""Keyword search as callers see it: BM25 as a reference computes it, in any language."""

import math
from collections import Counter

import numpy as np
import pytest

from mnemic._core import MemoryIndex
from mnemic.model import KeywordFields, Ranking, Scope
from tests.support.rows import record, wanted

AGENT = Scope("a")
WORDS = KeywordFields()
ALL_FIELDS = KeywordFields(0.5, 0.3, 0.2, previous=0.8, second=0.5, stop_words=0.25, max_df=0.2)

# bm25s 0.3.16, method "lucene", k1 0.9, b 0.4, on these sentences and queries split at spaces, the
# last without a token.
SENTENCES = [
    "ana paints the boat blue",
    "the blue boat and the red boat race on the lake",
    "bo cooks soup",
    "soup and bread on the boat at the lake",
    "blue",
    "…",
]
REFERENCE = {
    "the blue boat": [1.087339, 1.183476, 0.0, 0.745413, 0.429331, 0.0],
    "soup soup bread": [0.0, 0.0, 1.167734, 1.628562, 0.0, 0.0],
    "lake unknown": [0.0, 0.436407, 0.0, 0.465818, 0.0, 0.0],
}


def index(contents, *, language=None):
    """Return an index of contents by row, without vectors."""
    made = MemoryIndex(None, language=language)
    put(made, dict(enumerate(contents)) if isinstance(contents, list) else contents)
    return made


def put(made, contents, removed=(), **fields):
    records = [record(row + 1, content=content, **fields) for row, content in contents.items()]
    made.apply(records, [], None, [row + 1 for row in removed])


def keywords(of, text, fields=WORDS, scope=AGENT):
    """Return the keyword score of each row that has something of the text, best first."""
    ranking = Ranking(similarity=0.0, keywords=fields)
    question = wanted(scope, query=None, ranking=ranking, text=text)
    found, *_ = of.rank(question.search, *question.inputs)
    return Counter({row - 1: components["keyword"] for row, _id, _score, components, *_ in found})


def matches(of, text, **options):
    """Return the rows that have something of the text, best first."""
    return list(keywords(of, text, **options))


def most(query, documents):
    """Return what no score reaches: the idf of all words of the query, unknown ones too."""
    total = 0.0
    for word in query:
        holders = sum(word in document for document in documents)
        total += math.log(1 + (len(documents) - holders + 0.5) / (holders + 0.5))
    return total


# The reference


@pytest.mark.requirement("C157")
@pytest.mark.parametrize("query", REFERENCE)
def test_scores_are_those_of_the_reference_over_what_could_be_had(query):
    divisor = most(query.split(), [sentence.strip("…").split() for sentence in SENTENCES])
    found = keywords(index(SENTENCES), query)
    scores = [found[row] * divisor for row in range(len(SENTENCES))]
    assert scores == pytest.approx(REFERENCE[query], abs=1e-5)


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.5, 0.75), (0.0, 0.5), (10.0, 1.0)])
@pytest.mark.parametrize("seed", range(4))
def test_scores_of_random_documents_are_those_of_bm25s(seed, k1, b):
    bm25s = pytest.importorskip("bm25s", reason="the reference is in the group bench")
    random = np.random.default_rng(seed)
    vocabulary = [f"w{number}" for number in range(40)]
    lengths = random.integers(1, 30, size=60)
    # Squares, so that some words are common and some rare.
    documents = [[vocabulary[int(40 * x * x)] for x in random.random(length)] for length in lengths]
    reference = bm25s.BM25(method="lucene", k1=k1, b=b)
    reference.index(documents, show_progress=False)
    made = index([" ".join(document) for document in documents])
    for length in (1, 3, 8):
        query = [vocabulary[number] for number in random.integers(0, 40, size=length)]
        found = keywords(made, " ".join(query), KeywordFields(k1=k1, b=b))
        scores = np.array([found[row] for row in range(60)]) * most(query, documents)
        np.testing.assert_allclose(scores, reference.get_scores(query), atol=1e-5)


# Scripts without spaces

DIARY = ["我昨天看了图书", "什么时候去公园", "今天天气很好", "公园里的花开了"]


@pytest.mark.parametrize("language", ["english", None])
def test_pairs_of_grammar_are_stop_words_in_any_language(language):
    made, light = index(DIARY, language=language), KeywordFields(stop_words=0.25)
    full = keywords(made, "什么图书")
    assert full[0] == full[1] > 0
    found = keywords(made, "什么图书", light)
    assert found[0] == pytest.approx(4 * found[1])


def test_a_pair_that_no_memory_has_takes_little_from_the_match():
    made, light = index(DIARY), KeywordFields(stop_words=0.25)
    whole, with_seams = (keywords(made, text, light)[3] for text in ("公园", "公园画"))
    unlike = keywords(made, "公园画")[3]
    assert whole > with_seams > unlike


def test_stop_words_are_those_of_the_query_s_language():
    made = index(["der Wein und das Brot", "Wein"], language="english")
    found = keywords(made, "wo ist der Wein", KeywordFields(stop_words=0.0))
    assert set(found) == {0, 1}
    assert found[1] > found[0]
    assert found[1] == keywords(made, "Wein")[1]
    both = keywords(made, "who sold der Wein to him", KeywordFields(stop_words=0.0))
    assert both[0] > both[1], "English has as many stop words in it"


def test_hiragana_are_light_beside_kanji():
    made = index(["これはですから", "図書館の本"])
    query = "これは図書"
    assert matches(made, query, fields=KeywordFields(stop_words=0.25))[0] == 1
    assert matches(made, query)[0] == 0
    assert matches(made, "これは", fields=KeywordFields(stop_words=0.25)) == [0]


# Languages


@pytest.mark.parametrize(
    ("language", "content", "text"),
    [
        ("english", "Ann\u2019s cats are running", "Does Ann's cat run?"),
        ("en", "STRASSE", "straße"),
        ("german", "Die Häuser am See", "Haus"),
        ("ru", "Кошки спят", "кошка"),
        ("french", "Les chevaux mangeaient", "cheval mangeait"),
        ("tr", "kitaplar", "kitap"),
        (None, "Running", "\uff32unning"),
    ],
)
def test_words_meet_in_their_stems(language, content, text):
    assert matches(index(["nothing here", content], language=language), text) == [1]


def test_without_a_language_words_are_not_stemmed():
    assert matches(index(["cats run"]), "cat") == []
    assert matches(index(["cats run"], language="english"), "cat") == [0]


@pytest.mark.parametrize("language", ["english", None])
@pytest.mark.parametrize(
    ("contents", "text", "rows"),
    [
        (["京都へ行った", "東京都に住む", "大阪"], "東京", [1]),
        (["猫が好き", "犬が好き"], "猫", []),  # one character is no pair of a longer run
        (["猫。犬", "犬が好き"], "猫", [0]),
        (["ภาษาไทย", "อาหาร"], "ไทย", [0]),
        (["한국어 공부", "영어 공부"], "한국어", [0]),
        (["تعيش ليلى في عمان", "بيت"], "ليلى", [0]),
    ],
)
def test_scripts_without_spaces_are_looked_up_by_pairs_of_characters(
    language, contents, text, rows
):
    assert matches(index(contents, language=language), text) == rows


# Nothing to look for


@pytest.mark.parametrize("text", ["", " ", "?!…", "🍕", "unknown"])
@pytest.mark.parametrize("fields", [WORDS, ALL_FIELDS])
def test_a_text_without_known_words_finds_nothing(text, fields):
    assert matches(index(["boat", "…", "🍕"], language="english"), text, fields=fields) == []
