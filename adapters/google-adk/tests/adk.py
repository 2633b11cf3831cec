"""Events and sessions for the tests, and what a service finds."""

import asyncio

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

run = asyncio.run


def content(*texts, role="user"):
    return Content(role=role, parts=[Part(text=text) for text in texts])


def event(key, text, author="user", seconds=1.7e9, **fields):
    role = "user" if author == "user" else "model"
    return Event(
        id=key, author=author, content=content(text, role=role), timestamp=seconds, **fields
    )


def session(*events, key="s1", app="app", user="alice"):
    return Session(id=key, app_name=app, user_id=user, events=list(events))


async def found(service, query, app="app", user="alice"):
    answer = await service.search_memory(app_name=app, user_id=user, query=query)
    return answer.memories


async def texts(service, query, app="app", user="alice"):
    memories = await found(service, query, app, user)
    return [" ".join(part.text or "" for part in each.content.parts) for each in memories]
