"""The window of a conversation: who is in it, and how much of it."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
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


CAP = 200


def said(role, content):
    return {"role": role, "content": content}


def talk(count):
    """Return messages of user and assistant in turns, with their places as texts."""
    return [said("user" if n % 2 == 0 else "assistant", f"message {n}") for n in range(count)]


@pytest.mark.requirement("T043", "R376")
def test_no_history_and_no_message_give_an_empty_window():
    for nothing in (None, [], (), iter([])):
        assert build_conversation_window(nothing) == []
    assert build_conversation_window([], message=None) == []


@pytest.mark.requirement("C127", "R377")
def test_a_boundary_beside_the_history_is_moved_to_its_ends():
    whole = build_conversation_window(talk(3))
    assert build_conversation_window(talk(3), -1) == whole
    assert build_conversation_window(talk(3), -(2**70)) == whole
    for beyond in (3, 4, 2**70):
        assert build_conversation_window(talk(3), beyond) == []
        assert build_conversation_window(talk(3), beyond, message="x") == ["user: x"]


@pytest.mark.requirement("R378")
@pytest.mark.parametrize("empty", ["", " \n", None, "<tool>x</tool>", [], [{"type": "image"}], 5])
def test_messages_without_text_are_left_out(empty):
    history = [said("user", "a"), said("assistant", empty), said("user", "b")]
    assert build_conversation_window(history) == ["user: a", "user: b"]


@pytest.mark.requirement("T047", "C126")
@pytest.mark.parametrize(
    "letter",
    [
        *("a", "ö", "語", "🦉", "e\N{COMBINING ACUTE ACCENT}", "👩\u200d👧"),
        *("👍🏽", "नि", "❤\ufe0f"),
    ],
)
@pytest.mark.parametrize("offset", range(4))
def test_a_long_message_is_cut_between_characters(letter, offset):
    text = "x" * offset + letter * (3 * CAP // len(letter))
    for window in (
        build_conversation_window([said("user", text)], max_characters=CAP),
        build_conversation_window([], message=text, max_characters=CAP),
    ):
        joined = "\n---\n".join(window)
        assert CAP // 2 <= len(joined) <= CAP
        assert joined.startswith("user: ")
        first, _, last = joined.removeprefix("user: ").partition("…")
        assert text.startswith(first.strip())
        assert text.endswith(last.strip())
        for piece in (first.strip().removeprefix("x" * offset), last.strip()):
            assert piece == letter * (len(piece) // len(letter))


@pytest.mark.requirement("C126")
@pytest.mark.parametrize("spare", range(60))
def test_a_short_message_is_kept_in_the_last_of_the_space(spare):
    newest = said("user", "x" * (CAP - spare - len("user: ")))
    window = build_conversation_window([said("user", "hi"), newest], max_characters=CAP)
    assert (window[0] == "user: hi") == (spare >= len("user: hi\n---\n"))


@pytest.mark.requirement("C126")
def test_the_cap_is_eight_thousand_characters_unless_given():
    window = build_conversation_window([said("user", "word " * 5000)])
    assert 7000 <= sum(map(len, window)) <= 8000


TEXTS = st.text("ab c語\n", max_size=90)
MESSAGES = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), TEXTS), max_size=12
)


@pytest.mark.requirement(
    "R376", "R377", "R378", "C126", "C127", "T049", "T044", "T045", "T046", "T048"
)
@given(MESSAGES, st.integers(-3, 15), st.none() | st.text("ab", min_size=1, max_size=60))
@example([("user", "a"), ("assistant", "a")], 0, "a")
def test_a_window_is_the_end_of_all_lines(messages, boundary, message):
    history = [said(*each) for each in messages]
    lines = [
        f"{role}: {text.strip()}"
        for role, text in messages[max(0, boundary) :]
        if role in {"user", "assistant"} and text.strip()
    ]
    if message is not None:
        current = f"user: {message}"
        of_user = [at for at, line in enumerate(lines) if line.startswith("user: ")]
        if of_user and lines[of_user[-1]] == current:  # the assistant may be at work on it
            del lines[of_user[-1]]
        lines = [*lines, current]
    window = build_conversation_window(history, boundary, message=message, max_characters=CAP)
    assert sum(map(len, window)) <= CAP
    if sum(len(line) + len("\n---\n") for line in lines) <= CAP:
        assert [strip_line(line) for line in window] == lines
        return
    assert len(window) >= 1
    assert [strip_line(line) for line in window[1:]] == lines[len(lines) - len(window) + 1 :]


def strip_line(line):
    """Return a line without white space at the ends of its text."""
    role, _, text = line.partition(": ")
    return f"{role}: {text.strip()}"
