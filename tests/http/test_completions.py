"""The text in a response of `/chat/completions`, or why there is none."""

import pytest

from mnemic.errors import LanguageModelResultError
from tests.llm.test_http import complete


def refused(server, **change):
    server.faults(change=change)
    with pytest.raises(LanguageModelResultError) as raised:
        complete(server)
    assert len(server.requests()) == 1
    return str(raised.value)


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ("  as it is \n", "  as it is \n"),
        ("<think>so</think>\n1. One", "<think>so</think>\n1. One"),
        ([{"type": "text", "text": "One. "}, {"type": "text", "text": "Two."}], "One. Two."),
        ([{"type": "thinking", "thinking": "so"}, {"type": "output_text", "text": "Two."}], "Two."),
        (["One. ", "Two."], "One. Two."),
    ],
)
def test_a_content_is_text_or_parts_and_comes_unchanged(server, content, answer):
    server.faults(change={"content": content})
    assert complete(server) == answer


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "  \n",
        [],
        [{"type": "image_url", "text": "no"}],
        [{"type": "text", "text": 5}],
        [5],
    ],
)
def test_an_answer_without_text_is_refused(server, content):
    assert "no text" in refused(server, content=content, finish_reason="tool_calls")


@pytest.mark.parametrize("content", [5, 0.5, True, {"text": "x"}])
def test_a_content_that_is_neither_is_refused(server, content):
    assert "no text but" in refused(server, content=content)


def test_no_choice_and_refusals(server):
    assert "no choice" in refused(server, choices=[])
    server.reset()
    assert "refused to answer" in refused(server, content=None, refusal="I must not say that.")
    for reason in ("content_filter", "safety"):
        server.reset()
        message = refused(server, content="half of an", finish_reason=reason)
        assert "withheld" in message
        assert "half" not in message


def test_an_answer_that_was_cut_is_returned_unless_it_is_empty(server):
    server.faults(change={"content": "One.\nTw", "finish_reason": "length"})
    assert complete(server) == "One.\nTw"
    server.reset()
    assert "max_tokens" in refused(server, content="", finish_reason="length")
