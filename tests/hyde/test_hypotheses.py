"""Hypotheses: the prompts, the reading of answers of every kind, and the call of the model."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import estimate_tokens
from mnemic.errors import HypothesisError, InvalidArgumentError, MnemicError
from mnemic.hyde import (
    HYPOTHESIS_SYSTEM_PROMPT,
    generate_hypotheses,
    hypothesis_prompt,
    hypothesis_system_prompt,
    parse_hypotheses,
)
from mnemic.hyde.hypotheses import MAX_HYPOTHESIS_CHARACTERS
from mnemic.threads.sync_bridge import run_sync

WINDOW = ["user: How do we indent?", "assistant: With tabs."]


@pytest.mark.requirement("R367", "C125")
def test_the_system_prompt_has_the_number():
    prompt = hypothesis_system_prompt(7)

    assert "exactly 7 short declarative sentences" in prompt
    assert "{" not in prompt
    assert prompt == HYPOTHESIS_SYSTEM_PROMPT.format(count=7)
    for word in ("preference", "convention", "decision", "correction", "per line"):
        assert word in prompt


@pytest.mark.requirement("R366")
def test_the_prompt_has_the_window_and_the_number():
    prompt = hypothesis_prompt(WINDOW, 3)

    assert "user: How do we indent?\n---\nassistant: With tabs." in prompt
    assert "3 sentences" in prompt


@pytest.mark.parametrize("window", ["user: hello", None, 3])
def test_a_window_that_is_no_list_is_refused(window):
    with pytest.raises(InvalidArgumentError, match="window"):
        hypothesis_prompt(window, 3)


@pytest.mark.requirement(
    *("R368", "C125", "T020", "T021", "T022", "T023", "T024", "T025", "T026"),
    *("T027", "T028", "T029", "T030", "T031"),
)
@pytest.mark.parametrize(
    ("answer", "limit", "sentences"),
    [
        ("one line\ntwo lines\nthree lines", 5, ["one line", "two lines", "three lines"]),
        ("a b\nb c\nc d\nd e", 2, ["a b", "b c"]),
        ("- alpha\n- beta", 5, ["alpha", "beta"]),
        ("1. first\n2. second\n3. third", 5, ["first", "second", "third"]),
        ("a\n\n \t \nb", 5, ["a", "b"]),
        ("  padded \t\n", 5, ["padded"]),
        ("x\ny", 5, ["x", "y"]),
        ("- \n-x\n-", 5, ["-x"]),
        ("1.fact", 5, ["fact"]),
        ("a.fact", 5, ["a.fact"]),
        ("", 5, []),
        ("one", 0, []),
        ("3.14 is the ratio\n10. tenth", 5, ["3.14 is the ratio", "tenth"]),
        ("1) x\n* y\n• z\n2.) w", 5, ["x", "y", "z", "w"]),
        ("same\n- same\nSAME\nother", 5, ["same", "other"]),
        ("1. 3.5 GB is the limit", 5, ["3.5 GB is the limit"]),
        ("2025. was a year", 5, ["2025. was a year"]),
        ("*emphasis* stays", 5, ["*emphasis* stays"]),
        ('"Prefers tabs."\n“Uses uv.”\n«Oui»', 5, ["Prefers tabs.", "Uses uv.", "Oui"]),
        ('"a" and "b"', 5, ['"a" and "b"']),
        ('- "Prefers tabs."', 5, ["Prefers tabs."]),
        ('""\n"', 5, ['"']),
        ("```text\nPrefers tabs\n```", 5, ["Prefers tabs"]),
        ("Here they are:\n1. Prefers tabs", 5, ["Prefers tabs"]),
        ("Only this:", 5, ["Only this:"]),
        ("one\r\ntwo\rthree\u2028four", 5, ["one", "two", "three", "four"]),
        ("- - 1. deep", 5, ["deep"]),
    ],
)
def test_answers_are_read_line_by_line(answer, limit, sentences):
    assert parse_hypotheses(answer, limit) == sentences


@pytest.mark.parametrize(("text", "limit"), [(None, 1), (b"x", 1), ("x", -1), ("x", "1")])
def test_wrong_arguments_are_refused(text, limit):
    with pytest.raises(InvalidArgumentError):
        parse_hypotheses(text, limit)


HOSTILE = st.text(
    st.sampled_from("ab1.) -*•\"'`“”\n\r\u2028\x00\x1b[m\ud800\u202e\u200d\u05d0<>/tool:"),
    max_size=60,
)


@given(HOSTILE, st.integers(0, 5))
def test_sentences_of_any_answer_can_be_embedded(answer, limit):
    sentences = parse_hypotheses(answer, limit)

    assert len(sentences) <= limit
    assert len({sentence.casefold() for sentence in sentences}) == len(sentences)
    for sentence in sentences:
        assert sentence == sentence.strip() != ""
        assert not set(sentence) & set("\n\r\u2028\x00\x1b\ud800")
        assert estimate_tokens(sentence) > 0


@pytest.mark.parametrize(
    "answer",
    [
        *("- " * 500_000, "1. " * 300_000, '"' * 1_000_000, "\x1b[" + "0;" * 500_000),
        *("\x1b]" * 500_000, "a" * 1_000_000, "\n" * 1_000_000, "1." * 500_000),
        "- a\n" * 250_000,
    ],
    ids=range(9),
)
def test_a_megabyte_is_read_in_linear_time(answer):
    sentences = parse_hypotheses(answer, 10)

    assert len(sentences) <= 10
    assert all(len(sentence) <= MAX_HYPOTHESIS_CHARACTERS for sentence in sentences)


class Model:
    model = "stub"

    def __init__(self, answer):
        self.answer = answer
        self.calls = []

    async def complete(self, prompt, *, system=None):
        await asyncio.sleep(0)
        self.calls.append((prompt, system))
        return self.answer


class PlainModel(Model):
    def complete(self, prompt, *, system=None):
        self.calls.append((prompt, system))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.requirement("R365", "R367", "C125")
@pytest.mark.parametrize("kind", [Model, PlainModel])
def test_the_model_gets_both_prompts_and_its_answer_is_capped(kind):
    model = kind("1. Prefers tabs\n2. Uses uv\n3. Third")

    assert asyncio.run(generate_hypotheses(model, WINDOW, 2)) == ["Prefers tabs", "Uses uv"]
    assert model.calls == [(hypothesis_prompt(WINDOW, 2), hypothesis_system_prompt(2))]


@pytest.mark.parametrize("kind", [Model, PlainModel])
def test_without_an_event_loop_it_works_too(kind):
    assert run_sync(generate_hypotheses(kind("One"), WINDOW, 2)) == ["One"]


@pytest.mark.requirement("R365")
def test_an_empty_window_calls_nobody():
    model = Model("One")

    assert asyncio.run(generate_hypotheses(model, [], 5)) == []
    assert model.calls == []


def test_an_answer_without_text_gives_none():
    assert asyncio.run(generate_hypotheses(Model(" \n\n"), WINDOW, 5)) == []


@pytest.mark.requirement("R369")
@pytest.mark.parametrize("answer", [RuntimeError("user said secret"), None, 3, b"bytes"])
def test_a_failure_is_an_error_that_quotes_nothing(answer):
    with pytest.raises(HypothesisError, match=r"^hyde: LLM call: ") as raised:
        asyncio.run(generate_hypotheses(PlainModel(answer), WINDOW, 5))

    assert isinstance(raised.value, MnemicError)
    assert "secret" not in str(raised.value)
    if isinstance(answer, Exception):
        assert raised.value.__cause__ is answer


def test_a_cancellation_is_no_failure():
    class Hanging(Model):
        async def complete(self, prompt, *, system=None):  # noqa: ARG002 - it never answers
            await asyncio.Event().wait()

    async def cancelled():
        task = asyncio.ensure_future(generate_hypotheses(Hanging(""), WINDOW, 5))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
