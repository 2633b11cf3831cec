"""What hooks are answered from the memories, by a running server or by their own process."""

import hashlib
from typing import Any, Final

from mnemic import ScopedMemory
from mnemic.adapters import query_text, storable_text
from mnemic.mcp.fencing import fenced
from mnemic.mcp.told import DATA
from mnemic.policy import Redaction, RedactionPattern, redact

_BLOCK_TOKENS: Final = 600
_SHOWN: Final = 6
_LINE: Final = 200
_SECONDS: Final = 1.0
_CAPTURED: Final = "captured"
_IMPORTANCE: Final = 0.3

SECRETS: Final = Redaction(
    enabled=True,
    patterns=(
        "api_key",
        "card",
        "iban",
        "ssn",
        RedactionPattern(
            "named secret", r"(?i)\b\w*(?:password|passwd|secret|token|api[_-]?key)\s*[:=]\s*\S+"
        ),
    ),
)
"""What is never stored without being asked."""


def respond(memory: ScopedMemory, request: dict[str, Any]) -> str:
    """Return the text of an answer, "" for none.

    Args:
        memory: The memories of one user.
        request: `verb`, and what it needs.
    """
    return _VERBS[request["verb"]](memory, request)


def _session_start(memory: ScopedMemory, _: dict[str, Any]) -> str:
    important = memory.important(limit=_SHOWN, timeout=_SECONDS)
    recent = memory.recent(limit=_SHOWN, timeout=_SECONDS)
    entries = {hit.entry.id: hit.entry for hit in (*important, *recent) if not hit.entry.sensitive}
    if not entries:
        return ""
    texts = fenced(entry.content[: 4 * _LINE] for entry in entries.values())
    lines = [
        f"- {entry.created_at:%Y-%m-%d} {text[:_LINE]}"
        for entry, text in zip(entries.values(), texts, strict=True)
    ]
    head = (
        f"mnemic keeps {memory.count()} memories for this project or user; the tool recall finds "
        f"the others. {DATA}"
    )
    return "\n".join([head, *lines])


def _prompt(memory: ScopedMemory, request: dict[str, Any]) -> str:
    asked = query_text(request["text"])
    block = asked and memory.context(
        asked,
        max_tokens=_BLOCK_TOKENS,
        min_score="relative",
        timeout=_SECONDS,
    )
    return f"Memories that may matter here, found by mnemic. {DATA}\n{block}" if block else ""


def _store(memory: ScopedMemory, request: dict[str, Any]) -> str:
    for message in request["messages"]:
        said, session = storable_text(str(message["text"])), str(request["session"])
        digest = hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
        memory.add(
            redact(said, SECRETS),
            type="conversation",
            role=message["role"],
            session_id=session,
            tags=[_CAPTURED],
            importance=_IMPORTANCE,
            idempotency_key=f"{session}:{message['role']}:{digest}",
        )
    return ""


_VERBS: Final = {"session-start": _session_start, "prompt": _prompt, "store": _store}
