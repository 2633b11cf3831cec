"""`HttpLanguageModel` against a server process: prompts, options and failures."""

import asyncio
import pickle

import pytest

from mnemic import errors
from mnemic.llm import HttpLanguageModel
from tests.support.model_server import KEY, NOT_UTF8


def complete(server, prompt="user: which port?", system=None, **options):
    async def scenario():
        async with HttpLanguageModel("chat", base_url=server.url, **options) as llm:
            return await llm.complete(prompt, system=system)

    return asyncio.run(scenario())


def test_a_request_has_path_key_model_and_messages(server):
    assert complete(server, "user: which port?", "Write 1 statement.", api_key=KEY) == "Port."
    (request,) = server.requests()
    assert request["path"] == "/v1/chat/completions"
    assert request["headers"]["Authorization"] == f"Bearer {KEY}"
    assert request["body"] == {
        "model": "chat",
        "stream": False,
        "messages": [
            {"role": "system", "content": "Write 1 statement."},
            {"role": "user", "content": "user: which port?"},
        ],
    }


def test_without_a_system_prompt_there_is_no_system_message(server):
    complete(server)
    assert [each["role"] for each in server.requests()[0]["body"]["messages"]] == ["user"]


def test_options_are_sent_where_they_are_given(server):
    complete(server, temperature=0, max_tokens=50, extra_body={"reasoning_effort": "low"})
    body = server.requests()[0]["body"]
    assert (body["temperature"], body["max_tokens"], body["reasoning_effort"]) == (0, 50, "low")


@pytest.mark.parametrize(
    "fault",
    [
        {"malformed": True},
        {"body": "data: {}\n\n"},
        {"body": NOT_UTF8},
        {"reply": {}},
        {"reply": {"choices": None}},
        {"reply": {"choices": [{}]}},
        {"reply": {"choices": [{"message": None}]}},
        {"reply": {"choices": [{"message": {"content": "x"}, "finish_reason": 5}]}},
        {"body": '{"choices":' + "[" * 100_000},
    ],
)
def test_a_response_that_is_no_json_of_the_protocol_is_refused(server, fault):
    server.faults(**fault)
    with pytest.raises(errors.LanguageModelResultError, match="decode response"):
        complete(server)


@pytest.mark.requirement("R369")
def test_failures_are_language_model_errors(server):
    server.faults(status=400, body="wrong model")
    with pytest.raises(errors.LanguageModelServiceError, match=r"400.*wrong model") as raised:
        complete(server)
    assert isinstance(raised.value, errors.LanguageModelError)
    assert (raised.value.status, raised.value.body) == (400, "wrong model")
    server.faults(hang=True)
    with pytest.raises(errors.LanguageModelTimeoutError, match=r"0\.2 s"):
        complete(server, timeout=0.2)


def test_errors_keep_their_fields_in_pickles(server):
    server.faults(rate_limit=500, body="slow down")
    with pytest.raises(errors.LanguageModelServiceError) as raised:
        complete(server)
    copied = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - made here
    assert (type(copied), str(copied)) == (type(raised.value), str(raised.value))
    assert (copied.status, copied.body, copied.retry_after) == (429, "slow down", 500)


def test_any_text_comes_to_the_service_unchanged(server):
    prompt = '\0 \u2028 \U0001f600 "quoted" \\ \n'
    complete(server, prompt, prompt)
    assert [each["content"] for each in server.requests()[0]["body"]["messages"]] == [prompt] * 2


@pytest.mark.parametrize("prompt", [None, 5, b"x", "\ud800", ["x"]])
def test_a_prompt_that_is_no_text_is_refused(server, prompt):
    for wrong in ((prompt, None), ("x", prompt if prompt is not None else 5)):
        with pytest.raises(errors.InvalidArgumentError):
            complete(server, *wrong)
    assert server.requests() == []


@pytest.mark.requirement("R338", "R384")
def test_one_model_serves_many_prompts_at_once(server):
    server.faults(delay=0.1, times=0)

    async def scenario():
        async with HttpLanguageModel("flash", base_url=server.url) as llm:
            prompts = [f"user: statement {number}." for number in range(200)]
            answers = await asyncio.gather(*map(llm.complete, prompts))
            assert answers == [f"Statement {number}." for number in range(200)]

    asyncio.run(scenario())
    report = server.report()
    assert report["chat"] == 200
    assert 1 < report["most"] <= 100  # connections
