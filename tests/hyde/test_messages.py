"""Messages of every form, and what is none."""

from enum import Enum
from types import SimpleNamespace

import pytest

from mnemic.hyde import build_conversation_window
from tests.hyde.test_window import assistant, user


class Role(Enum):
    USER = "user"
    TOOL = "tool"


TEXT_PARTS = [
    {"type": "text", "text": "one"},
    {"type": "tool_use", "id": "1", "input": {"text": "hidden"}},
    {"type": "tool_result", "content": [{"type": "text", "text": "hidden"}]},
    {"type": "thinking", "thinking": "hidden", "text": "hidden"},
    {"type": "image", "text": "hidden"},
    {"type": "output_text", "text": "two"},
    {"type": "text", "text": {"value": "three", "annotations": []}},
    ["four", [{"text": "five"}]],
    SimpleNamespace(type="text", text="six"),
]


@pytest.mark.requirement("R378")
@pytest.mark.parametrize(
    "message",
    [
        user("one\ntwo"),
        user(["one", "two"]),
        user([{"type": "text", "text": "one"}, {"type": "input_text", "text": "two"}]),
        {"role": "User", "content": "one\ntwo"},
        {"role": Role.USER, "content": "one\ntwo"},
        {"role": "user", "parts": [{"text": "one"}, {"text": "two"}]},
        ("user", "one\ntwo"),
        ["user", ["one", "two"]],
        "user: one\ntwo",
        "one\ntwo",
        SimpleNamespace(role="user", content="one\ntwo"),
        SimpleNamespace(type="human", content="one\ntwo"),
        SimpleNamespace(role="user", content=[SimpleNamespace(type="text", text="one\ntwo")]),
    ],
)
def test_messages_may_have_many_forms(message):
    assert build_conversation_window([message]) == ["user: one\ntwo"]
    assert build_conversation_window([message], message="one\ntwo") == ["user: one\ntwo"]


def test_of_parts_those_with_text_count():
    window = build_conversation_window([assistant(TEXT_PARTS)])

    assert window == ["assistant: one\ntwo\nthree\nfour\nfive\nsix"]


def test_parts_that_contain_themselves_end():
    parts = ["text"]
    parts.append(parts)
    loop = {"type": "text"}
    loop["text"] = loop

    assert build_conversation_window([user(parts), user([loop])])[0].startswith("user: text")


@pytest.mark.parametrize("junk", [None, 3, {}, b"user", object(), (), ("user",), {"role": 3}, []])
def test_what_is_no_message_is_left_out(junk):
    assert build_conversation_window([junk, user("x"), junk]) == ["user: x"]
