"""Requests to retrieval policies, through both doors."""

import asyncio

from mnemic.policy import INTERLEAVED, RetrievalPolicy, RetrievalRequest

BY_KEYWORDS = INTERLEAVED.overridden(search_type="keyword", min_score=0)


def request(message="Where is the harbour?", user_id="alice", session_id="today", **fields):
    """Return a request of Alice's session today."""
    return RetrievalRequest(message, user_id, session_id, **fields)


def through_plain_door(policy, verb, asked):
    """Call a verb of a policy."""
    return getattr(policy, verb)(asked)


def through_awaited_door(policy, verb, asked):
    """Await the same verb in an event loop."""

    async def call():
        return await getattr(policy.aio, verb)(asked)

    return asyncio.run(call())


DOORS = {"plain": through_plain_door, "awaited": through_awaited_door}


def prompt_of(memory, asked=None, **options):
    """Return the prompt block of a request."""
    return RetrievalPolicy(memory, **options).run(asked or request()).prompt


def ids_of(payload):
    """Return the ids of the memories of a payload, in order."""
    return [memory.id for memory in payload.memories]
