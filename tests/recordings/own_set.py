"""The own set of benches/quality as programs: its memories, and calls with each question."""

from benches.quality.datasets import load_languages, load_own

QUESTIONS = 60
"""Of one program: few enough to find the shortest one that shows a difference."""
ALICE = {"user_id": "alice"}
SETUP = {
    "is_awaited": False,
    "opens": "Memory",
    "is_sealed": False,
    "options": {},
    "expander": None,
    "policies": [{"timeout": None, "redaction": {"enabled": True}}],
    "limiter": None,
    "hyde": {"timeout": 60, "injection_token_budget": 400},
    "service": {},
}


def own_programs():
    """Yield programs of the own set, and of its parts in five languages alone."""
    own = load_own().collections
    languages = load_languages().collections[:-1]
    for collections, embedder in ((own, "minilm"), (own, "floored"), (languages, "words")):
        for collection in collections:
            for first in range(0, len(collection.questions), QUESTIONS):
                some = collection.questions[first : first + QUESTIONS]
                yield {
                    "name": f"{collection.name}/{embedder}/{first}",
                    "setup": {**SETUP, "embedder": embedder},
                    "steps": [
                        _step("memory", "add_many", list(map(_record, collection.memories))),
                        *(step for question in some for step in _asked(question.text)),
                    ],
                }


def _record(memory):
    created_at = memory.created_at.isoformat()
    record = {"content": memory.content, "created_at": created_at, "type": memory.type}
    return {**record, "tags": list(memory.tags), **ALICE}


def _asked(text):
    request = {"$": "RetrievalRequest", "message": text, "session_id": "monday", **ALICE}
    return [
        _step("memory", "search", text, explain=True, **ALICE),
        _step("memory", "retrieve", text, expand=True, **ALICE),
        *(_step("memory", call, text, **ALICE) for call in ("recall", "contradictions", "context")),
        _step("service", "retrieve", {"$": "MemoryQuery", "query": text}, **ALICE),
        _step("policy 0", "run", request),
        _step("hyde", "turn", text, [], turn_id=text),
    ]


def _step(on, call, *args, **named):
    return {"on": on, "call": call, "args": list(args), "named": named}
