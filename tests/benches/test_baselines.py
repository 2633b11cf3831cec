"""The keyword baseline reads scripts without spaces, so that it is no straw man there."""

import pytest

from benches.quality.datasets import Memory

pytest.importorskip("bm25s", reason="the baselines are in the group bench")

from benches.quality.methods.bm25 import flat, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Red kite's 2 tails", ["the", "red", "kite", "s", "2", "tails"]),
        ("我有iPhone 15很好", ["我", "有", "iphone", "15", "很", "好"]),
        ("ラーメンを食べた", list("ラーメンを食べた")),
        ("ที่นี่", list("ที่นี่")),
        ("고양이 좋아", ["고양이", "좋아"]),
        ("Straße, кошки", ["straße", "кошки"]),
        ("……", []),
    ],
)
def test_a_character_is_a_word_where_a_script_has_no_spaces(text, words):
    assert words_of(text) == words


def test_a_chinese_question_finds_the_sentence_that_shares_its_characters():
    sentences = ["今天下雨不去公园。", "姐姐在城北开了一家面馆。", "晚上看了一部老电影。"]
    baseline = flat()
    baseline.index([Memory(id=str(at), content=text) for at, text in enumerate(sentences)])
    assert baseline.search("谁开了面馆", 3)[0] == "1"
    assert baseline.scores("x").tolist() == [0, 0, 0]
