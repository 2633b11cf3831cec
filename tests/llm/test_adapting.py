"""Functions and objects as language models."""

import asyncio
import functools
import threading

import pytest

from mnemic.compat import LanguageModelJudge
from mnemic.errors import ArgumentMismatchError, InvalidArgumentError, LanguageModelResultError
from mnemic.llm import HttpLanguageModel, as_language_model
from mnemic.threads.sync_bridge import run_sync

PLAIN = "p|None", "p|s"
JOINED = "p", "s\n\np"


class Awaited:
    model = "awaited"

    async def complete(self, prompt, *, system=None):
        return f"{prompt}|{system}"


class Plain:
    model_name = "plain"

    def complete(self, prompt, system=None):
        return f"{prompt}|{system}"


class Without:
    async def complete(self, prompt):
        return prompt


class AnyNames:
    def complete(self, prompt, **options):
        return f"{prompt}|{options['system']}"


class Callable:
    async def __call__(self, prompt, system):
        return f"{prompt}|{system}"


def one(prompt):
    return prompt


def two(prompt, system):
    return f"{prompt}|{system}"


def other_names(text, instructions):
    return f"{text}|{instructions}"


def with_options(prompt, temperature=0.5):
    return prompt if temperature == 0.5 else "wrong"


async def coroutine(prompt, *, system=None):
    await asyncio.sleep(0)
    return f"{prompt}|{system}"


def returning_an_awaitable(prompt, system):
    return coroutine(prompt, system=system)


@pytest.mark.parametrize(
    ("given", "answers", "model"),
    [
        (Awaited(), PLAIN, "awaited"),
        (Plain(), PLAIN, "plain"),
        (Without(), JOINED, "Without"),
        (AnyNames(), PLAIN, "AnyNames"),
        (Callable(), PLAIN, "Callable"),
        (one, JOINED, "one"),
        (two, PLAIN, "two"),
        (other_names, PLAIN, "other_names"),
        (with_options, JOINED, "with_options"),
        (coroutine, PLAIN, "coroutine"),
        (returning_an_awaitable, PLAIN, "returning_an_awaitable"),
        (functools.partial(two, system="fixed"), ("p|None", "p|s"), "partial"),
        (lambda prompt: prompt, JOINED, "<lambda>"),
        (str, None, None),
    ],
)
def test_each_form_answers(given, answers, model):
    if answers is None:
        with pytest.raises(InvalidArgumentError, match="the class str"):
            as_language_model(given)
        return
    llm = as_language_model(given)

    async def both():
        return await llm.complete("p"), await llm.complete("p", system="s")

    assert asyncio.run(both()) == answers
    assert run_sync(llm.complete("p")) == answers[0]  # a synchronous service
    assert llm.model == model
    assert repr(llm) == f"AdaptedLanguageModel(model={model!r})"
    assert as_language_model(llm) is llm
    assert as_language_model(llm, model="other").model == "other"


def test_a_plain_function_runs_in_another_thread_and_a_coroutine_in_the_loop():
    places = []

    def plain(prompt):
        places.append(threading.current_thread())
        return prompt

    async def awaited(prompt):
        places.append(asyncio.current_task())
        return prompt

    async def scenario():
        await as_language_model(plain).complete("p")
        await as_language_model(awaited).complete("p")
        return asyncio.current_task()

    task = asyncio.run(scenario())
    assert places[0] is not threading.main_thread()
    assert places[1] is task
    run_sync(as_language_model(plain).complete("p"))
    assert places[2] is threading.current_thread()


@pytest.mark.parametrize("answer", [None, 5, b"x", ["x"]])
def test_an_answer_that_is_no_text_is_refused(answer):
    with pytest.raises(LanguageModelResultError, match="in place of a text"):
        asyncio.run(as_language_model(lambda _prompt: answer).complete("secret prompt"))


def test_the_functions_own_error_goes_to_the_caller():
    def failing(_prompt):
        raise OSError("down")

    with pytest.raises(OSError, match="down"):
        asyncio.run(as_language_model(failing).complete("p"))


def test_a_cancellation_reaches_the_coroutine():
    cancelled = []

    async def hanging(_prompt):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def scenario():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await as_language_model(hanging).complete("p")

    asyncio.run(scenario())
    assert cancelled == [True]


@pytest.mark.parametrize("given", [None, 5, "gpt", ["x"], object()])
def test_what_is_neither_is_refused(given):
    with pytest.raises(InvalidArgumentError, match="llm must be"):
        as_language_model(given)


def test_a_wrong_name_of_an_argument_is_named():
    with pytest.raises(ArgumentMismatchError, match="model"):
        as_language_model(one, modle="m")
    for wrong in ("", " ", 5):
        with pytest.raises(InvalidArgumentError, match="model"):
            as_language_model(one, model=wrong)


def test_it_serves_where_a_language_model_is_taken(server):
    judge = LanguageModelJudge(as_language_model(lambda _prompt: '[{"id": 0, "confidence": 0.7}]'))
    (judgement,) = asyncio.run(judge.judge("a", ["b"]))
    assert judgement.confidence == 0.7

    async def over_http():
        async with HttpLanguageModel("m", base_url=server.url) as llm:
            reply = '[{"id": 0, "confidence": 0.9}]'
            server.faults(change={"content": reply})
            return await LanguageModelJudge(llm).judge("a", ["b"])

    assert asyncio.run(over_http())[0].confidence == 0.9
