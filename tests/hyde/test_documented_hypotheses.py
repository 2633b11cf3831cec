"""Hypotheses: one prompt for a small model, and the lines of its answer."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import HypothesisError, MnemicError
from mnemic.hyde import (
    HYPOTHESIS_SYSTEM_PROMPT,
    generate_hypotheses,
    hypothesis_prompt,
    parse_hypotheses,
)
from tests.support.hyde_twin import LineModel, lines_of

WINDOW = ["user: which port?", "assistant: for what?", "user: the server"]


@pytest.mark.requirement("T020", "R368")
def test_each_line_is_a_hypothesis():
    assert parse_hypotheses("one fact\ntwo facts\nthree facts", 5) == [
        "one fact",
        "two facts",
        "three facts",
    ]


@pytest.mark.requirement("T021", "C125")
def test_no_more_than_the_wanted_number_is_taken():
    assert parse_hypotheses("a1\nb2\nc3\nd4", 2) == ["a1", "b2"]


@pytest.mark.requirement("T022", "T023", "T024", "T025", "T026", "T027", "T028", "T029", "T031")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- alpha\n- beta", ["alpha", "beta"]),
        ("1. first\n2. second\n3. third", ["first", "second", "third"]),
        ("\nalpha\n\n \t\n\nbeta\n", ["alpha", "beta"]),
        ("   alpha  \n\tbeta\t", ["alpha", "beta"]),
        ("a\nb\n7", ["a", "b", "7"]),
        ("- \nalpha", ["alpha"]),
        ("-x", ["-x"]),
        ("1.fact", ["fact"]),
        ("a.fact", ["a.fact"]),
        ("3.14 is the ratio", ["3.14 is the ratio"]),
        ("10. tenth", ["tenth"]),
        ("123. fact", ["fact"]),
        ("1) x", ["x"]),
        ("12) x", ["x"]),
        ("* x", ["x"]),
        ("• x", ["x"]),
        ("  - spaced", ["spaced"]),
        ("same\nsame\nother\nsame", ["same", "other"]),
        ("- same\n1. same", ["same"]),
        ("-5 degrees is cold", ["-5 degrees is cold"]),
        ("a\r\nb\r\n", ["a", "b"]),
    ],
)
def test_lines_lose_their_markers_and_nothing_else(text, found):
    assert parse_hypotheses(text, 10) == found


@pytest.mark.requirement("C125")
@pytest.mark.parametrize("line", ['"The port is 80"', '- "The port is 80"', "“The port is 80”"])
def test_quotes_around_a_line_are_removed(line):
    assert parse_hypotheses(line, 10) == ["The port is 80"]


@pytest.mark.requirement("C125")
def test_a_name_in_quotes_stays_in_quotes():
    line = 'The flag is called "fast"'
    assert parse_hypotheses(line, 10) == [line]


@pytest.mark.requirement("C125", "T021")
def test_repeated_lines_take_no_place():
    assert parse_hypotheses("a\na\na\nb", 2) == ["a", "b"]


@pytest.mark.requirement("T030")
def test_nothing_comes_of_nothing():
    assert parse_hypotheses("", 5) == []
    assert parse_hypotheses(" \n\t\n", 5) == []
    assert parse_hypotheses("one\ntwo", 0) == []


@pytest.mark.requirement("R368", "C125", "T020")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "- ", "* ", "• ", "1. ", "2.", "30. ", "4) ", "  ", "\t- "]),
            st.sampled_from(["alpha", "beta two", "3.14 is it", "-x", "x", "a.fact", "語", ""]),
        ),
        max_size=12,
    ),
    st.integers(0, 10),
)
def test_parsing_agrees_with_its_twin(parts, count):
    text = "\n".join(marker + words for marker, words in parts)
    assert parse_hypotheses(text, count) == lines_of(text, count)


@pytest.mark.requirement("C125")
@given(st.text(max_size=300), st.integers(0, 10))
def test_any_text_gives_at_most_so_many_different_lines(text, count):
    found = parse_hypotheses(text, count)
    assert len(found) <= count
    assert len(set(found)) == len(found)
    for each in found:
        assert each
        assert each == each.strip()
        assert "\n" not in each


@pytest.mark.requirement("C125")
def test_an_answer_without_end_gives_no_more_than_the_wanted_lines():
    assert parse_hypotheses("- fact\n" * 1_000_000 + "other", 2) == ["fact", "other"]
    assert len(parse_hypotheses("\n".join(map(str, range(1_000_000))), 5)) == 5


@pytest.mark.requirement("R366")
@pytest.mark.parametrize("count", [1, 5, 10])
def test_the_prompt_has_the_window_and_the_number(count):
    prompt = hypothesis_prompt(WINDOW, count)
    assert "\n---\n".join(WINDOW) in prompt
    assert re.search(rf"\b{count}\b", prompt.replace("\n---\n".join(WINDOW), ""))


@pytest.mark.requirement("R365", "R366", "R367", "C125")
@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_model_gets_one_prompt_and_one_system_prompt(count):
    model = LineModel(["a", "b", "c"])
    found = asyncio.run(generate_hypotheses(model, WINDOW, count))
    assert found == ["a", "b", "c"][:count]
    ((prompt, system),) = model.calls
    assert prompt == hypothesis_prompt(WINDOW, count)
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
    assert asyncio.run(generate_hypotheses(LineModel(text=answer), WINDOW, 5)) == []


@pytest.mark.requirement("R369", "R389")
def test_a_failing_model_is_a_typed_error():
    failure = ConnectionError("no route")
    with pytest.raises(HypothesisError, match=r"^hyde: LLM call:") as caught:
        asyncio.run(generate_hypotheses(LineModel(failure=failure), WINDOW, 5))
    assert isinstance(caught.value, MnemicError)
    assert caught.value.__cause__ is failure


@pytest.mark.requirement("R369")
@pytest.mark.parametrize("junk", [None, b"a fact", 7, ["a fact"], {"text": "a fact"}])
def test_an_answer_that_is_no_text_is_a_typed_error(junk):
    with pytest.raises(HypothesisError, match=r"^hyde: LLM call:"):
        asyncio.run(generate_hypotheses(LineModel(text=junk), WINDOW, 5))


@pytest.mark.requirement("R369", "C110")
def test_a_cancellation_is_no_failure_of_the_model():
    async def main():
        model = LineModel(hangs=True)
        task = asyncio.create_task(generate_hypotheses(model, WINDOW, 5))
        await model.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
