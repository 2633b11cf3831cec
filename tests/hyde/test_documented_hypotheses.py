"""Hypotheses: one prompt for a small model, and the lines of its answer."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.hyde import (
    HYPOTHESIS_SYSTEM_PROMPT,
    generate_hypotheses,
    hypothesis_prompt,
    parse_hypotheses,
)
from tests.support.hyde_twin import LineModel, lines_of

WINDOW = ["user: which port?", "assistant: for what?", "user: the server"]


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
