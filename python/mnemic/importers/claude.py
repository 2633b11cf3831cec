"""Reads Claude's export of data: the messages of each conversation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from mnemic.importers.archive import conversations
from mnemic.importers.record import Chosen, Lost, Record

NO_TEXTS: Final = "thoughts, uses of tools and their results in messages"
FILES: Final = "attachments and files"

_ROLES: Final = {"human": "user", "assistant": "assistant"}


class _Block(msgspec.Struct):
    type: str | None = None
    text: str | None = None


class _Message(msgspec.Struct):
    uuid: str
    sender: str | None = None
    text: str | None = None
    created_at: str | None = None
    content: list[_Block] | None = None
    attachments: list[Any] | None = None
    files: list[Any] | None = None


class _Conversation(msgspec.Struct):
    uuid: str
    chat_messages: list[_Message]
    name: str | None = None
    created_at: str | None = None


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each message with a text."""
    del chosen  # an export is of one person, and its fields are known
    for place, conversation in conversations(path, lost, _Conversation):
        for position, message in enumerate(conversation.chat_messages):
            text = _text_of(message, lost)
            if text:
                fields = {
                    "created_at": message.created_at or conversation.created_at,
                    "session_id": conversation.uuid,
                    "role": _ROLES.get(message.sender or ""),
                    "position": position,
                    "type": "conversation",
                }
                title = {"title": conversation.name}
                yield Record(message.uuid, f"{place}, message {position}", text, fields, title)


def _text_of(message: _Message, lost: Lost) -> str:
    lost[FILES] += len(message.attachments or []) + len(message.files or [])
    blocks = message.content or []
    texts = [block.text for block in blocks if block.type == "text" and block.text]
    lost[NO_TEXTS] += sum(block.type != "text" for block in blocks)
    return ("\n\n".join(texts) or message.text or "").strip()
