"""Memories whose text repeats that of a better one are left out, and named by it."""

# ruff: noqa: RUF001 - texts in many scripts are the point

import pytest

from mnemic.context.packing import deduplicate
from mnemic.errors import CountMismatchError, InvalidArgumentError
from mnemic.model.payload import Provenance
from tests.support.payloads import memory


def names(memories):
    return [memory.id for memory in memories]


@pytest.mark.requirement("C030", "C031", "C032")
@pytest.mark.parametrize(
    ("text", "same", "other"),
    [
        ("Hello, world", "ＨELLO,  world!", "Hello, word"),
        ("Élodie préfère le café", "E\u0301LODIE PRÉFÈRE LE CAFÉ.", "Élodie préfère le cafe"),
        ("Die Straße ist lang", "„DIE STRASSE IST LANG“", "Die Straßen ist lang"),
        ("Привет, мир", "ПРИВЕТ, МИР!", "Пока, мир"),
        ("Ο Οδυσσέας", "«Ο ΟΔΥΣΣΈΑΣ»", "Ο Οδυσσέα"),
        ("你好，世界", "「你好,世界。」", "再见，世界"),
        ("ガラスのコップ", "ｶﾞﾗｽのコップ。", "カラスのコップ"),
        ("مرحبا بالعالم", "مرحبا  بالعالم؟", "مرحبا بالعلم"),
        ("नमस्ते दुनिया", "नमस्ते दुनिया।", "नमस्ते दुनिय"),
        ("สวัสดีชาวโลก", " สวัสดีชาวโลก\n", "สวัสดีชาวโล"),
        ("한국어를 배운다", "한국어를 배운다.", "한국어를 배웠다"),
        ("שלום עולם", "„שלום עולם”", "שלום לעולם"),
        ("I like C++", "i like c++.", "I like C#"),
    ],
)
def test_texts_repeat_each_other_in_every_script_and_only_if_their_normal_forms_do(
    text, same, other
):
    kept = deduplicate([memory("1", text), memory("2", same), memory("3", other)])
    assert names(kept) == ["1", "3"]


def test_a_memory_stands_for_those_that_its_duplicates_stood_for_already():
    given = [
        memory("1", "tea", score=0.9, provenance=Provenance(duplicate_ids=("0",))),
        memory("2", "tea", provenance=Provenance(duplicate_ids=("3", "4"))),
    ]
    assert deduplicate(given)[0].provenance.duplicate_ids == ("0", "2", "3", "4")


@pytest.mark.requirement("C035")
def test_near_duplicates_are_left_out_only_on_request_and_only_with_the_same_numbers():
    said = "The ferry to the island leaves from the pier of the old harbour at"
    given = [
        memory("1", f"{said} 10:05", score=0.9),
        memory("2", f"{said} 10:05 sharp"),
        memory("3", f"{said} 10:45"),
    ]
    assert names(deduplicate(given)) == ["1", "2", "3"]
    assert names(deduplicate(given, near=0.85)) == ["1", "3"]
    assert names(deduplicate(given, near=1.0)) == ["1", "2", "3"]


@pytest.mark.parametrize("near", [-0.1, 1.5, float("nan"), float("inf")])
def test_a_threshold_out_of_range_is_refused_with_the_range_and_the_value(near):
    with pytest.raises(InvalidArgumentError, match=r"near must be a number from 0 to 1, found"):
        deduplicate([memory("1", "tea")], near=near)


def test_a_score_that_is_no_number_and_missing_contents_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"memories\[1\]\.score"):
        deduplicate([memory("1", "tea"), memory("2", "tea", score=float("nan"))])
    with pytest.raises(CountMismatchError, match="1 contents were given with 2 memories"):
        deduplicate([memory("1", "tea"), memory("2", "tea")], contents=["tea"])


@pytest.mark.requirement("C215")
@pytest.mark.parametrize("near", [None, 0.5])
def test_a_raised_digit_makes_another_text(near):
    texts = ["We have 10⁵ users", "We have 105 users", "We have 10⁶ users", "We have 10⁵ users."]
    kept = deduplicate([memory(str(at), text) for at, text in enumerate(texts)], near=near)
    assert len(kept) == 3
