"""An embedder's languages: declared, checked, and told by the script of a text."""

# ruff: noqa: RUF001 - letters of several scripts are the point

import pytest

from mnemic import Memory
from mnemic._core import Coverage
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import InvalidArgumentError, MnemicError
from tests.support.embedders import WordEmbedder


def embedder(languages):
    made = WordEmbedder()
    made.languages = languages
    return made


@pytest.mark.parametrize(
    ("languages", "text", "share"),
    [
        ({"en"}, "a cup of tea", 1),
        ({"en"}, "ｆｕｌｌ ｗｉｄｔｈ", 1),
        ({"en"}, "一杯茶", 0.05),
        ({"en"}, "чашка чая", 0),
        ({"en"}, "Wo steht der Wein, den Anna mag?", 0.1),
        ({"en", "de"}, "Wo steht der Wein, den Anna mag?", 1),
        ({"en"}, "Anna Wein", 1),
        ({"en"}, "用Python写的 script", 1),
        ({"en"}, "我昨天用 AI 写的代码", 0.05),
        ({"en"}, "2024-05-03 😀", 1),
        (("en", "zh"), "一杯茶", 1),
        (["zh"], "a cup of tea", 0),
        (frozenset({"ja"}), "お茶を一杯", 1),
        ({"zh"}, "お茶はおいしいですね", 0.05),
        ({"sr"}, "šolja čaja, шоља чаја", 1),
    ],
)
def test_a_text_is_covered_by_script_and_language(languages, text, share):
    assert ValidatedEmbedder(embedder(languages)).coverage.max_share(text) == share


def test_an_embedder_without_languages_covers_any():
    assert ValidatedEmbedder(WordEmbedder()).coverage is None


@pytest.mark.parametrize(
    ("languages", "message"),
    [
        ("en", "ISO 639-1 codes.* got a str of 2 characters"),
        (set(), "got a set of 0 items"),
        ([], "got a list of 0 items"),
        (7, "got 7"),
        ({"en", 7}, "got a set of 2 items"),
        (["en", "english"], 'no language "english".*ISO 639-1'),
        ({"EN"}, 'no language "EN"'),
        ({"xx"}, 'no language "xx"'),
        ({"\ud800"}, "got a set of 1 item"),
    ],
)
def test_languages_that_are_no_codes_are_refused(languages, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Memory(":memory:", embedder=embedder(languages))


def test_a_coverage_is_of_known_codes():
    with pytest.raises(MnemicError, match="no language"):
        Coverage(["de", "klingon"])
    with pytest.raises(TypeError):
        Coverage("de", "en")
