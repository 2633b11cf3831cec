"""Texts without tool blocks, control characters and escapes."""

import pytest
from hypothesis import given

from mnemic.hyde import build_conversation_window
from mnemic.hyde.window import clean, without_tool_blocks
from tests.hyde.test_window import HOSTILE, assistant


@pytest.mark.requirement("R378", "C126")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("before <tool>run</tool> after", "before  after"),
        ("before\n<tool>\nrun\n</tool>\nafter", "before\n\nafter"),
        ("<tool_result>42</tool_result>done", "done"),
        ("a <tool>x <tool>y</tool> z</tool> b", "a  b"),
        ("a <tool>x <tool_result>y</tool> b", "a  b"),
        ("a <tool>never closed", "a"),
        ("a </tool> b", "a  b"),
        ('a <tool name="x">y</tool> b', "a  b"),
        ("a <tool/> b <tool x='1'/> c", "a  b  c"),
        ("a <TOOL>y</Tool> b", "a  b"),
        ("a <tool_result>x</tool>y</tool_result> b", "a  b"),
        ("a <function_calls>x</function_calls> b", "a  b"),
        ("if a < b and c > d: <tooltip>", "if a < b and c > d: <tooltip>"),
    ],
)
def test_tool_blocks_are_left_out(content, text):
    assert build_conversation_window([assistant(content)]) == [f"assistant: {text}"]


@given(HOSTILE)
def test_cleaning_twice_changes_nothing(text):
    assert clean(clean(text)) == clean(text)
    assert without_tool_blocks("a" + text).startswith("a")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never closed\nnext line", "\nnext line"),
        ("a\x00b\x7fc\x9b", "abc"),
        ("a\r\nb\rc\u2028d\te", "a\nb\nc\nd\te"),
        ("lone \ud83d", "lone \ufffd"),
        ("שלום \u202eabc", "שלום \u202eabc"),
        ("\U0001f600", "\U0001f600"),
    ],
)
def test_control_characters_and_escapes_go(text, cleaned):
    assert clean(text) == cleaned
