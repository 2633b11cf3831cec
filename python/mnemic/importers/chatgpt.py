"""Reads ChatGPT's export of data: the messages of each conversation, as it ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from mnemic.importers.archive import conversations
from mnemic.importers.record import Chosen, Lost, Record

NO_TEXTS: Final = "messages that are no text, such as code, thoughts and results of tools"
OTHER_ROLES: Final = "messages of the system and of tools"
PICTURES: Final = "pictures, recordings and files in messages"
BRANCHES: Final = "messages of branches that were not gone on with"

_ROLES: Final = ("user", "assistant")
_TEXTS: Final = ("text", "multimodal_text")


class _Author(msgspec.Struct):
    role: str | None = None
    name: str | None = None


class _Content(msgspec.Struct):
    content_type: str | None = None
    parts: list[Any] | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    author: _Author = msgspec.field(default_factory=_Author)
    create_time: float | None = None
    content: _Content = msgspec.field(default_factory=_Content)
    metadata: dict[str, Any] | None = None


class _Node(msgspec.Struct):
    message: _Message | None = None
    parent: str | None = None


class _Conversation(msgspec.Struct):
    mapping: dict[str, _Node]
    title: str | None = None
    create_time: float | None = None
    current_node: str | None = None
    conversation_id: str | None = None
    id: str | None = None


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each message of a person or of the assistant."""
    del chosen  # an export is of one person, and its fields are known
    for place, conversation in conversations(path, lost, _Conversation):
        yield from _records(conversation, place, lost)


def _records(conversation: _Conversation, place: str, lost: Lost) -> Iterator[Record]:
    branch = _last_branch(conversation)
    every = sum(node.message is not None for node in conversation.mapping.values())
    lost[BRANCHES] += every - sum(node.message is not None for _, node in branch)
    session = conversation.conversation_id or conversation.id
    for position, (name, node) in enumerate(branch):
        if node.message is None:
            continue
        text = _text_of(node.message, lost)
        if text:
            yield Record(
                node.message.id or name,
                f"{place}, message {position}",
                text,
                {
                    "created_at": node.message.create_time or conversation.create_time,
                    "session_id": session,
                    "role": node.message.author.role,
                    "speaker": node.message.author.name,
                    "position": position,
                    "type": "conversation",
                },
                {"title": conversation.title},
            )


def _last_branch(conversation: _Conversation) -> list[tuple[str, _Node]]:
    """Return the messages that lead to the last one shown, the first before."""
    nodes = conversation.mapping
    name = conversation.current_node
    if name not in nodes:
        name = next(reversed(nodes), None)
    branch: dict[str, _Node] = {}
    while name is not None and name in nodes and name not in branch:
        branch[name] = nodes[name]
        name = nodes[name].parent
    return list(branch.items())[::-1]


def _text_of(message: _Message, lost: Lost) -> str:
    if message.author.role not in _ROLES:
        lost[OTHER_ROLES] += 1
        return ""
    if message.content.content_type not in _TEXTS:
        lost[NO_TEXTS] += 1
        return ""
    parts = [_part(part) for part in message.content.parts or []]
    texts = [part for part in parts if part is not None]
    files = (message.metadata or {}).get("attachments")  # without texts; a picture is a part too
    lost[PICTURES] += max(len(parts) - len(texts), len(files) if isinstance(files, list) else 0)
    return "\n\n".join(texts).strip()


def _part(part: Any) -> str | None:
    """Return a part that is written, or that was spoken and written down."""
    if isinstance(part, dict) and part.get("content_type") == "audio_transcription":
        part = part.get("text")
    return part if isinstance(part, str) else None
