"""A real agent and its runner, with a model that answers from a list."""

from typing import Any

from adk import content, run
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai.types import Content, FunctionCall, Part
from google_adk_mnemic import MnemicMemoryService

SAID = "I am allergic to peanuts"


class ListedModel(BaseLlm):
    """Answers with what is listed, and keeps the requests."""

    model: str = "listed"
    answers: list[Content]
    asked: list[Any] = []  # noqa: RUF012 - pydantic copies it

    async def generate_content_async(self, llm_request, stream=False):  # noqa: ARG002, FBT002
        self.asked.append(llm_request)
        yield LlmResponse(content=self.answers[len(self.asked) - 1])


async def remember(callback_context):
    context = callback_context._invocation_context
    await context.memory_service.add_session_to_memory(context.session)


async def talk(service, tools, answers, text, *, session="s1", user="alice"):
    """Say one thing to a new agent; return what the model was asked, and the sessions."""
    model = ListedModel(answers=answers)
    agent = LlmAgent(name="waiter", model=model, tools=tools, after_agent_callback=remember)
    sessions = InMemorySessionService()
    runner = Runner(app_name="app", agent=agent, session_service=sessions, memory_service=service)
    await sessions.create_session(app_name="app", user_id=user, session_id=session)
    said = content(text)
    async for _ in runner.run_async(user_id=user, session_id=session, new_message=said):
        pass
    return model.asked


def shown(request):
    """Everything that a model was shown, as one text; an older kit puts memories into config."""
    contents = "\n".join(each.model_dump_json(exclude_none=True) for each in request.contents)
    return f"{contents}\n{request.config.system_instruction}"


def call(query):
    part = Part(function_call=FunctionCall(name="load_memory", args={"query": query}))
    return Content(role="model", parts=[part])


def test_what_one_session_said_is_preloaded_into_the_next_for_the_same_user_alone(tmp_path):
    async def play():
        service = MnemicMemoryService(tmp_path / "memory.db")
        await talk(service, [], [content("I see", role="model")], SAID)
        answer = [content("Salad", role="model")]
        tools = [PreloadMemoryTool()]
        query = "Which foods must I avoid?"
        (asked,) = await talk(service, tools, answer, query, session="s2")
        assert "PAST_CONVERSATIONS" in shown(asked)
        assert f"user: {SAID}" in shown(asked)
        (asked,) = await talk(service, tools, answer, query, session="s3", user="bob")
        assert SAID not in shown(asked)
        await service.memory.close()

    run(play())


def test_a_model_that_calls_load_memory_gets_author_time_and_session(tmp_path):
    async def play():
        service = MnemicMemoryService(tmp_path / "memory.db")
        await talk(service, [], [content("I see", role="model")], SAID)
        answers = [call("dangerous foods"), content("No peanuts", role="model")]
        _, asked = await talk(service, [load_memory], answers, "What may I eat?", session="s2")
        (answer,) = [
            part.function_response
            for each in asked.contents
            for part in each.parts
            if part.function_response
        ]
        memories = answer.response["result"].memories
        said = next(each for each in memories if each.author == "user")
        assert said.content.parts[0].text == SAID
        assert said.custom_metadata == {"session_id": "s1"}
        assert said.timestamp[:2] == "20"
        await service.memory.close()

    run(play())
