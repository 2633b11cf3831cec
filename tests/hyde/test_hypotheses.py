"""Hypotheses: the prompts, the reading of answers of every kind, and the call of the model."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import estimate_tokens
from mnemic.errors import HypothesisError, InvalidArgumentError, MnemicError
from mnemic.hyde import (
    HYPOTHESIS_SYSTEM_PROMPT,
    generate_hypotheses,
    hypothesis_prompt,
    parse_hypotheses,
)
from mnemic.hyde.hypotheses import MAX_HYPOTHESIS_CHARACTERS
from mnemic.threads.sync_bridge import run_sync
from tests.support.hyde_twin import LineModel, PlainLineModel

WINDOW = ["user: How do we indent?", "assistant: With tabs."]


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
        ("x\n7", 5, ["x", "7"]),
        ("- \n-x\n-", 5, ["-x"]),
        ("1.fact\n123. second", 5, ["fact", "second"]),
        ("-5 degrees is cold\n  - spaced", 5, ["-5 degrees is cold", "spaced"]),
        ("a.fact", 5, ["a.fact"]),
        ("", 5, []),
        ("one", 0, []),
        ("3.14 is the ratio\n10. tenth", 5, ["3.14 is the ratio", "tenth"]),
        ("12) x\n* y\n• z\n2.) w", 5, ["x", "y", "z", "w"]),
        ("same\n- same\nSAME\nother", 5, ["same", "other"]),
        ("1. 3.5 GB is the limit", 5, ["3.5 GB is the limit"]),
        ("2025. was a year", 5, ["2025. was a year"]),
        ("*emphasis* stays", 5, ["*emphasis* stays"]),
        ('"Prefers tabs."\n“Uses uv.”\n«Oui»', 5, ["Prefers tabs.", "Uses uv.", "Oui"]),
        ('"a" and "b"\nThe flag "c"', 5, ['"a" and "b"', 'The flag "c"']),
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


@pytest.mark.parametrize("kind", [LineModel, PlainLineModel])
def test_without_an_event_loop_it_works_too(kind):
    assert run_sync(generate_hypotheses(kind(["One"]), WINDOW, 2)) == ["One"]


@pytest.mark.requirement("R369", "R389")
@pytest.mark.parametrize("kind", [LineModel, PlainLineModel])
@pytest.mark.parametrize("junk", [None, 3, b"bytes", ["a fact"], {"text": "a fact"}])
def test_an_answer_that_is_no_text_is_an_error(kind, junk):
    with pytest.raises(HypothesisError, match=r"^hyde: LLM call: "):
        asyncio.run(generate_hypotheses(kind(text=junk), WINDOW, 5))


@pytest.mark.requirement("R369", "R389")
@pytest.mark.parametrize("kind", [LineModel, PlainLineModel])
def test_a_failure_is_an_error_that_quotes_nothing(kind):
    failure = RuntimeError("user said secret")
    with pytest.raises(HypothesisError, match=r"^hyde: LLM call: ") as raised:
        asyncio.run(generate_hypotheses(kind(failure=failure), WINDOW, 5))

    assert isinstance(raised.value, MnemicError)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is failure


TALK = ["user: which port?", "assistant: for what?", "user: the server"]


@pytest.mark.requirement("R366")
@pytest.mark.parametrize("count", [1, 5, 10])
def test_the_prompt_has_the_window_and_the_number(count):
    prompt = hypothesis_prompt(TALK, count)
    assert "\n---\n".join(TALK) in prompt
    assert re.search(rf"\b{count}\b", prompt.replace("\n---\n".join(TALK), ""))


@pytest.mark.requirement("R365", "R366", "R367", "C125")
@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_model_gets_one_prompt_and_one_system_prompt(count):
    model = LineModel(["a", "b", "c"])
    found = asyncio.run(generate_hypotheses(model, TALK, count))
    assert found == ["a", "b", "c"][:count]
    ((prompt, system),) = model.calls
    assert prompt == hypothesis_prompt(TALK, count)
    assert re.search(rf"\b{count}\b", system)
    assert not re.search(r"\bN\b", system)
    assert "{" not in system
    for word in ("memory", "preference", "convention", "decision", "correction", "line"):
        assert word in system.lower()


@pytest.mark.requirement("R367")
def test_the_template_is_public():
    for word in ("memory", "coding", "declarative", "preference", "convention", "correction"):
        assert word in HYPOTHESIS_SYSTEM_PROMPT.lower()


@pytest.mark.requirement("R365")
@pytest.mark.parametrize("empty", [[], ()])
def test_an_empty_window_makes_no_call(empty):
    model = LineModel(["a"])
    assert asyncio.run(generate_hypotheses(model, empty, 5)) == []
    assert model.calls == []


@pytest.mark.requirement("R365", "R360")
@pytest.mark.parametrize("answer", ["", "\n\n", "- \n"])
def test_an_answer_without_lines_gives_nothing(answer):
    assert asyncio.run(generate_hypotheses(LineModel(text=answer), TALK, 5)) == []


@pytest.mark.requirement("R369", "C110")
def test_a_cancellation_is_no_failure_of_the_model():
    async def main():
        model = LineModel(hangs=True)
        task = asyncio.create_task(generate_hypotheses(model, TALK, 5))
        await model.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
