"""Any text can be stored and asked for, whatever is in it."""

from functools import partial
from uuid import NAMESPACE_URL, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import MemoryEntry
from mnemic.adapters import named_id, query_text, storable_text
from mnemic.errors import InvalidArgumentError
from mnemic.model import validation

HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from("\0\ud800\udc00\ufffd \n")))


@given(HOSTILE)
def test_any_text_becomes_one_that_memories_hold_and_keeps_every_character(text):
    stored = storable_text(text)
    assert MemoryEntry(f"-{stored}").content == f"-{stored}"
    assert storable_text(stored) == stored
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert stored == paired.replace("\0", " ")


@given(HOSTILE)
def test_any_message_becomes_a_query_or_nothing(text):
    asked = query_text(text)
    assert asked == "" or validation.query(asked) == asked.strip()


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        (" Where is the key?\n", "Where is the key?"),
        ("a\0b\ud800c", "a b c"),
        ("\ud83d\ude00 \0", "😀"),
        ("", ""),
        (" \n\0\ud800", ""),
        ("?", "?"),
        (" " * 20_000 + "x" * 20_000, "x" * 10_000),
        ("x" * 9_999 + " y", "x" * 9_999),
    ],
)
def test_what_is_asked_is_the_beginning_without_what_no_query_has(message, asked):
    assert query_text(message) == asked


def test_a_plain_text_is_stored_as_it_is():
    text = "As it is, \ufeffÄ \u2028 e\u0301 😀"
    assert storable_text(text) == text


@given(st.text())
def test_a_name_has_the_id_that_the_standard_library_gives_it(name):
    assert named_id(NAMESPACE_URL, name) == uuid5(NAMESPACE_URL, name)


def test_names_of_half_characters_have_ids_of_their_own():
    names = ["\ud800", "\udc00", "\ud800\udc00", "😀", "?", "\\ud800", "\ufffd", "\0", ""]
    assert len({named_id(NAMESPACE_URL, name) for name in names}) == len(names)


@pytest.mark.parametrize("given", [None, b"text", 1, ["text"], "namespace"])
def test_what_is_no_text_is_refused(given):
    calls = [partial(named_id, given, "name")]
    if given != "namespace":
        calls += [partial(storable_text, given), partial(query_text, given)]
        calls.append(partial(named_id, NAMESPACE_URL, given))
    for call in calls:
        with pytest.raises(InvalidArgumentError, match="must be a"):
            call()
