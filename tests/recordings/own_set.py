"""The own set of benches/quality as programs: its memories, and calls with each question."""

from benches.quality.datasets import load_languages, load_own

QUESTIONS = 60
"""Of one program: few enough to find the shortest one that shows a difference."""


def own_programs():
    """Return programs of the own set, and of its parts in five languages alone."""
    own = load_own().collections
    return [
        *_programs(own, "minilm"),
        *_programs(own, "floored"),
        *_programs(load_languages().collections[:-1], "words"),
    ]


def _programs(collections, embedder):
    for collection in collections:
        memories = [
            {
                "content": each.content,
                "created_at": each.created_at.isoformat(),
                "type": each.type,
                "tags": list(each.tags),
                "user_id": "alice",
            }
            for each in collection.memories
        ]
        for first in range(0, len(collection.questions), QUESTIONS):
            some = collection.questions[first : first + QUESTIONS]
            yield {
                "name": f"{collection.name}/{embedder}/{first}",
                "setup": _setup(embedder),
                "steps": [
                    _step("memory", "add_many", memories),
                    *(step for question in some for step in _asked(question.text)),
                ],
            }


def _setup(embedder):
    return {
        "is_awaited": False,
        "opens": "Memory",
        "embedder": embedder,
        "is_sealed": False,
        "options": {},
        "expander": None,
        "policies": [{"timeout": None, "redaction": {"enabled": True}}],
        "limiter": None,
        "hyde": {"timeout": 60, "injection_token_budget": 400},
        "window": {"max_tokens": 4000},
        "service": {},
        "retriever": {},
    }


def _asked(text):
    alice = {"user_id": "alice"}
    request = {"$": "RetrievalRequest", "message": text, "session_id": "monday", **alice}
    return [
        _step("memory", "search", text, explain=True, **alice),
        _step("memory", "retrieve", text, expand=True, **alice),
        _step("memory", "recall", text, **alice),
        _step("memory", "contradictions", text, **alice),
        _step("memory", "context", text, **alice),
        _step("service", "retrieve", {"$": "MemoryQuery", "query": text}, **alice),
        _step("policy 0", "run", request),
        _step("hyde", "turn", text, [], turn_id=text),
    ]


def _step(on, call, *args, **named):
    return {"on": on, "call": call, "args": list(args), "named": named}
