"""A model that answers from a list, and calls of it."""

import asyncio

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

run = asyncio.run


class ListedClient(FunctionInvocationLayer, BaseChatClient):
    """Answers with what is listed, then with "Good"; keeps what it was shown."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)
        self.shown = []

    def _inner_get_response(self, *, messages, stream, **_):
        self.shown.append([message.text for message in messages])
        answer = self.answers.pop(0) if self.answers else Message("assistant", ["Good"])
        if not stream:
            return self._response(answer)
        return ResponseStream(self._updates(answer), finalizer=ChatResponse.from_updates)

    async def _response(self, answer):
        return ChatResponse(messages=[answer])

    async def _updates(self, answer):
        yield ChatResponseUpdate(role="assistant", contents=answer.contents)


def agent(*providers, answers=()):
    client = ListedClient(*answers)
    return Agent(client, context_providers=list(providers)), client


def session(session_id):
    return AgentSession(session_id=session_id)


async def said(provider, user):
    return sorted(entry.content for entry in await provider.scoped(user).list(limit=1000))
