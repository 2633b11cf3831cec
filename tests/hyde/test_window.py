"""The window of a conversation: who is in it, and how much of it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import InvalidArgumentError
from mnemic.hyde import build_conversation_window
from mnemic.hyde.window import SEPARATOR, clean


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


@pytest.mark.parametrize(
    "arguments",
    [
        {"messages": 3},
        {"messages": "user: x"},
        {"messages": [], "last_summarization_index": "1"},
        {"messages": [], "last_summarization_index": True},
        {"messages": [], "max_characters": 0},
        {"messages": [], "max_characters": 1.5},
    ],
)
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(InvalidArgumentError):
        build_conversation_window(**arguments)


@pytest.mark.requirement("C126", "T049")
def test_the_current_message_is_in_it_once():
    history = [user("Which port?"), assistant("5432."), user("And the host?")]
    window = ["user: Which port?", "assistant: 5432.", "user: And the host?"]

    assert build_conversation_window(history, message="And the host?") == window
    assert build_conversation_window(history, message=user("And the host?")) == window
    assert build_conversation_window(history[:2], message="And the host?") == window
    assert build_conversation_window([*history, assistant("…")], message="And the host?") == [
        *window[:2],
        "assistant: …",
        window[2],
    ]


@pytest.mark.requirement("C126")
def test_the_current_message_is_kept_whatever_follows_it():
    history = [user("old"), user("Which port?"), *[assistant("x" * 500)] * 9]

    window = build_conversation_window(history, max_characters=600)
    assert window[0] == "user: Which port?"
    assert all(line.startswith("assistant: x") for line in window[1:])
    assert "user: Which port?" in build_conversation_window(history[:2], max_characters=18)


class Counted(Sequence):
    """A conversation that counts the messages that are read."""

    def __init__(self, length):
        self.length = length
        self.read = []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.read.append(index)
        return user("x" * 94) if index % 2 else assistant("y" * 94)


@pytest.mark.requirement("C126")
def test_of_a_long_conversation_only_the_newest_messages_are_read():
    messages = Counted(100_000)
    window = build_conversation_window(messages)

    assert len(window) in range(70, 80)
    assert messages.read == list(range(99_999, 99_999 - len(messages.read), -1))
    assert len(messages.read) <= len(window) + 1


@pytest.mark.parametrize(
    "text",
    [
        *("<tool>" * 170_000, "</tool>" * 150_000, "<tool " * 170_000, "<tool" + " " * 1_000_000),
        *("<tool_result>" * 50_000 + "</tool>" * 50_000, "\x1b" * 1_000_000, "<" * 1_000_000),
        *("\x1b[" + "0" * 1_000_000, "\x1b]" + "a" * 1_000_000, "\ud800" * 1_000_000),
        *("\u0301" * 1_000_000, "\u200d" * 1_000_000, "\x00" * 1_000_000, "x" * 1_000_000),
        "<tool>a</tool>" * 70_000,
    ],
    ids=range(15),
)
def test_a_megabyte_is_read_in_linear_time(text):
    window = build_conversation_window([user("first"), assistant(text)], message=text)

    assert len(SEPARATOR.join(window)) <= 8000


HOSTILE = st.lists(
    st.sampled_from(["<tool>", "</tool>", "<tool_result>", "</tool_result>", "user: ", "\n---\n"])
    | st.text(st.sampled_from("ab \n\x00\x1b[]m\ud800\u202e\u05d0\u0301\u200d<>"), max_size=6),
    max_size=12,
).map("".join)


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "x"]), HOSTILE), max_size=8),
    st.none() | HOSTILE,
    st.integers(-2, 10),
    st.integers(1, 120),
)
def test_every_window_can_be_sent_and_fits(messages, message, index, most):
    window = build_conversation_window(messages, index, message=message, max_characters=most)
    joined = SEPARATOR.join(window)

    assert len(joined) <= most
    assert clean(joined) == joined
    assert not set(joined) & set("\x00\x1b")
    assert all(line.startswith(("user: ", "assistant: ")) for line in window)
    assert "<tool>" not in joined
    if any(build_conversation_window([], message=message)) and most > 40:
        assert window[-1].startswith("user: ")
