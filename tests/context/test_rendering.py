"""The messages and texts that a context window renders."""

import pytest

from mnemic.context import BuildContextOptions, ContextItemType
from mnemic.errors import InvalidArgumentError
from tests.support.windows import (
    ASSISTANT,
    DOCUMENT,
    INSTRUCTION,
    OTHER,
    SYSTEM,
    USER,
    Words,
    contents,
    opened,
    words,
)

pytestmark = pytest.mark.requirement("C018", "C019", "C020", "C021", "C022", "C028", "C042", "C043")


def test_build_joins_contents_in_order_and_counts_what_it_joined():
    window = opened(1000)
    window.add("hello", USER)
    window.add("be kind", SYSTEM)
    window.add("a memory", DOCUMENT)
    context = window.build()
    assert str(context) == context.text == "be kind\n\n---\n\na memory\n\n---\n\nhello"
    assert context.token_count == 7
    assert contents(context.items) == ["be kind", "a memory", "hello"]
    assert context.left_out == ()
    assert context.budget == 750


def test_only_the_newest_turns_are_built():
    window = opened(1000)
    window.add("pinned turn", USER, pinned=True)
    for number in range(12):
        window.add(f"turn {number}", USER if number % 2 == 0 else ASSISTANT, priority=100 - number)
    context = window.build()
    assert contents(context.items) == ["pinned turn", *(f"turn {n}" for n in range(2, 12))]
    assert sorted(contents(context.left_out)) == ["turn 0", "turn 1"]
    newest = window.build(BuildContextOptions(max_history=1))
    assert contents(newest.items) == ["pinned turn", "turn 11"]


def test_the_reserve_stays_free_and_what_is_smaller_is_still_built():
    window = opened(100, compaction_threshold=100)
    window.add(words(10, "prompt"), SYSTEM)
    window.add(words(20, "rule"), INSTRUCTION, priority=0)
    window.add(words(30, "high"), DOCUMENT, priority=90)
    window.add(words(25, "low"), DOCUMENT, priority=10)
    window.add(words(5, "small"), DOCUMENT, priority=5)
    context = window.build(BuildContextOptions(reserve_tokens=31, separator=" "))
    assert contents(context.items) == [
        words(10, "prompt"), words(20, "rule"), words(30, "high"), words(5, "small"),
    ]  # fmt: skip
    assert contents(context.left_out) == [words(25, "low")]
    assert (context.token_count, context.budget) == (65, 69)


def test_separators_count():
    window = opened(20, compaction_threshold=100)
    for number in range(10):
        window.add(f"a{number} b", DOCUMENT)
    context = window.build(BuildContextOptions(reserve_tokens=2))
    assert context.token_count == Words().count(context.text) == 17
    assert len(context.items) == 6
    assert contents(context.left_out) == [f"a{number} b" for number in range(4)]


def test_what_fits_only_without_its_separator_is_passed_over_for_something_smaller():
    window = opened(100)
    for size, priority in ((5, 90), (5, 80), (4, 70)):
        window.add(words(size), DOCUMENT, priority=priority)
    context = window.build(BuildContextOptions(reserve_tokens=90))
    assert [item.token_count for item in context.items] == [5, 4]
    assert context.token_count == context.budget == 10


def test_a_text_that_takes_more_than_its_parts_is_cut_until_it_fits():
    class Growing(Words):
        def count(self, text, /):
            return 2 * super().count(text) if len(text.split()) > 3 else super().count(text)

    window = opened(12, counter=Growing())
    for number in range(4):
        window.add(f"a{number}", USER)
    context = window.build(BuildContextOptions(reserve_tokens=5, separator=" "))
    assert contents(context.items) == ["a1", "a2", "a3"]
    assert context.token_count == 3


def test_only_the_types_asked_for_are_built():
    window = opened(1000)
    window.add("hello", USER)
    window.add("a memory", DOCUMENT)
    assert str(window.build(BuildContextOptions(types=("retrieved_document",)))) == "a memory"
    assert str(window.build(BuildContextOptions(types=()))) == ""


def test_the_reserve_is_1000_tokens_but_at_most_a_quarter_of_the_window():
    assert [BuildContextOptions().budget(n) for n in (1, 100, 4000, 8000)] == [1, 75, 3000, 7000]
    assert BuildContextOptions(reserve_tokens=0).budget(100) == 100
    window = opened(100)
    with pytest.raises(InvalidArgumentError, match="less than the window's 100, got 100"):
        window.build(BuildContextOptions(reserve_tokens=100))
    for wrong in ({"reserve_tokens": 1}, {}):
        with pytest.raises(InvalidArgumentError, match="options must be BuildContextOptions"):
            window.build(wrong)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_history": -1}, "max_history must be at least 0"),
        ({"separator": None}, "separator must be a str, got NoneType"),
        ({"reserve_tokens": -5}, "reserve_tokens must be at least 0"),
        ({"types": "user_message"}, "types must be a list"),
        ({"types": ["letter"]}, "type 'letter' is unknown"),
    ],
)
def test_options_say_which_field_is_wrong(fields, message):
    with pytest.raises(InvalidArgumentError, match=message):
        BuildContextOptions(**fields)


def test_messages_have_roles_and_only_prompt_and_instructions_speak_as_the_system():
    window = opened(1000)
    for kind in ContextItemType:
        window.add(kind.name, kind)
    window.add("result", OTHER, role="tool")
    assert window.build_structured() == [
        {"role": "system", "content": "SYSTEM_PROMPT"},
        {"role": "system", "content": "INSTRUCTION"},
        {"role": "user", "content": "RETRIEVED_DOCUMENT"},
        {"role": "user", "content": "WORKING_MEMORY"},
        {"role": "user", "content": "TOOL_RESULT"},
        {"role": "user", "content": "USER_MESSAGE"},
        {"role": "assistant", "content": "ASSISTANT_MESSAGE"},
        {"role": "user", "content": "OTHER"},
        {"role": "tool", "content": "result"},
    ]
    assert window.build_structured(BuildContextOptions(types=(USER,))) == [
        {"role": "user", "content": "USER_MESSAGE"}
    ]
