"""Reads Claude's export of data: the messages of each conversation, and texts attached to them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from mnemic.importers.archive import conversations
from mnemic.importers.record import Chosen, Lost, Record

NO_TEXTS: Final = "thoughts, uses of tools and their results in messages"
FILES: Final = "attachments and files of which the export has no text"

_ROLES: Final = {"human": "user", "assistant": "assistant"}


class _Block(msgspec.Struct):
    type: str | None = None
    text: str | None = None


class _Attachment(msgspec.Struct):
    file_name: str | None = None
    extracted_content: str | None = None


class _Message(msgspec.Struct):
    uuid: str
    sender: str | None = None
    text: str | None = None
    created_at: str | None = None
    content: list[_Block] | None = None
    attachments: list[_Attachment] | None = None
    files: list[Any] | None = None


class _Conversation(msgspec.Struct):
    uuid: str
    chat_messages: list[_Message]
    name: str | None = None
    created_at: str | None = None


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each message with a text, and for each text attached to one."""
    del chosen  # an export is of one person, and its fields are known
    for place, conversation in conversations(path, lost, _Conversation):
        for position, message in enumerate(conversation.chat_messages):
            fields = {
                "created_at": message.created_at or conversation.created_at,
                "session_id": conversation.uuid,
                "role": _ROLES.get(message.sender or ""),
                "position": position,
                "type": "conversation",
            }
            for end, text, file in _texts(message, lost):
                metadata = {"title": conversation.name, "file": file}
                where = f"{place}, message {position}"
                yield Record(f"{message.uuid}{end}", where, text, fields, metadata)


def _texts(message: _Message, lost: Lost) -> Iterator[tuple[str, str, str | None]]:
    """Yield the texts of a message, each with the end of its key, and the name of its file."""
    blocks = message.content or []
    lost[NO_TEXTS] += sum(block.type != "text" for block in blocks)
    texts = [block.text for block in blocks if block.type == "text" and block.text]
    said = ("\n\n".join(texts) or message.text or "").strip()
    if said:
        yield "", said, None
    lost[FILES] += len(message.files or [])
    for number, each in enumerate(message.attachments or [], 1):
        attached = (each.extracted_content or "").strip()
        lost[FILES] += not attached
        if attached:
            yield f"/attachment-{number}", attached, each.file_name
