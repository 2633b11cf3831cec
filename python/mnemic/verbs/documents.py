"""The verbs for documents, whose parts are memories that are replaced and deleted as one."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import msgspec

from mnemic.errors import InvalidEntryError
from mnemic.model import (
    AddedMemories,
    DeleteResult,
    Expression,
    MemoryEntry,
    MemoryStatus,
    OnEmbedError,
    validation,
)
from mnemic.model.filter import Criteria, parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.reporting.progress import Progress, reporting
from mnemic.threads.sync_bridge import run_blocking
from mnemic.verbs.adding import times
from mnemic.verbs.base import ScopedBase

_DOCUMENT: Final = "document"
_STATUSES: Final = [status.value for status in MemoryStatus]


class AsyncDocumentVerbs(ScopedBase):
    """Stores and deletes documents."""

    async def add_document(
        self,
        text: str,
        *,
        name: str,
        user_id: str | None = None,
        session_id: str | None = None,
        tags: Sequence[str] = (),
        importance: float = 0.5,
        metadata: Mapping[str, Any] | None = None,
        sensitive: bool = False,
        on_embed_error: OnEmbedError = "raise",
        progress: Progress | None = None,
    ) -> AddedMemories:
        """Store a Markdown or plain text in parts, in place of the one of this name, all or none.

        A part has the name as `source`, its place as `position` and headings in its `metadata`. One
        with the same text as before keeps its id and vectors; other old ones are gone for good.

        Args:
            text: The whole document.
            tags: Of each part.
            importance: Of each part.
            metadata: Of each part, beside "document".
            sensitive: Whether each part is.
        """
        from mnemic.store.values import Selection  # noqa: PLC0415 - opened memories have loaded it

        scope = self._scope.narrowed(user_id, session_id=session_id)
        validation.text("text", text)
        expression = _of_document(name)
        fields = {
            "source": name,
            "tags": tags,
            "importance": importance,
            "sensitive": sensitive,
        }
        given, moments = _checked(metadata), times(repeat(None), self._repository.now())

        def new_part(content: str, headings: tuple[str, ...], at: int) -> NewEntry:
            own = {**given, _DOCUMENT: {"headings": list(headings)}}
            place = {"content": content, "position": at, "metadata": own}
            return self._new({**fields, **place}, scope, next(moments))

        stored = await self._repository.lister.in_any_state(scope, expression)
        parts = await run_blocking(lambda: _parts(text, new_part, stored), self._repository)
        with reporting(progress, "add_many") as report:
            added = await self._repository.adder.add(
                parts,
                on_conflict="replace",
                on_embed_error=on_embed_error,
                may_repeat=True,
                instead_of=Selection(scope, Criteria(None, expression)),
                report=report,
            )
        if not {old.id for old in stored} <= {new.id for new in added}:
            await self._repository.deleter.erase_pending()
        return added

    async def delete_document(
        self,
        name: str,
        *,
        permanent: bool = False,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete all parts of a document."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        wanted = Criteria(None, _of_document(name))
        return await self._repository.deleter.delete_all(scope, wanted, permanent=permanent)


def _parts(
    text: str,
    new_part: Callable[[str, tuple[str, ...], int], NewEntry],
    stored: Iterable[MemoryEntry],
) -> list[NewEntry]:
    """Return the parts of a text as they are to be stored.

    Args:
        text: The document.
        new_part: Makes one of a content, its headings and its place.
        stored: The parts of the document so far.
    """
    from mnemic.embed.chunking import document_parts  # noqa: PLC0415 - not every program uses it

    same = defaultdict[str, deque[MemoryEntry]](deque)
    for old in sorted(stored, key=lambda old: old.position or 0):
        same[old.content].append(old)
    parts: list[NewEntry] = []
    for at, (content, headings) in enumerate(document_parts(text)):
        part = new_part(content, headings, at)
        parts.append(_over(part, same[content].popleft()) if same[content] else part)
    if not parts:
        raise InvalidEntryError("text is blank; delete_document(name) deletes a document")
    return parts


def _over(new: NewEntry, old: MemoryEntry) -> NewEntry:
    """Return a part with the id of one that has its text; that one if nothing else differs."""
    entry = msgspec.structs.replace(new.entry, id=old.id, created_at=old.created_at)
    unchanged = msgspec.structs.replace(
        entry, updated_at=old.updated_at, version=old.version, is_encrypted=old.is_encrypted
    )
    return new._replace(entry=old if unchanged == old else entry)


def _of_document(name: object) -> Expression:
    """Return the filter of a document's parts; other memories may have its name as their source."""
    return parse_filter(
        {
            "source": validation.name("name", name),
            "metadata": {_DOCUMENT: {"headings": {"exists": True}}},
            "status": {"in": _STATUSES},
        }
    )


def _checked(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    checked = validation.metadata({} if metadata is None else metadata)
    if _DOCUMENT in checked:
        raise InvalidEntryError(
            'metadata has a key "document", in which each part has its headings; rename it'
        )
    return checked
