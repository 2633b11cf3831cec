"""A `MemoryStore` of Pydantic AI's harness whose files are memories."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid4

from pydantic_ai_harness import memory as harness

from mnemic import AsyncScopedMemory, MemoryEntry, ScopedMemory
from mnemic.adapters import named_id, query_text
from mnemic.errors import DuplicateEntryError

_Mutation: TypeAlias = harness.MemoryMutation
_Operation: TypeAlias = harness.MemoryOperation | None
_IDS: Final = UUID("3d2c8e51-6c0f-4f2a-8b8e-90a1d5f7c3b2")
_KEY: Final = "memory_file"
_SEGMENT: Final = re.compile(r"(?!\.?$)(?!.*\.\.)[A-Za-z0-9_.-]{1,200}")
_MOST_PATHS: Final = 10_000
_MOST_RECEIPTS: Final = 100
_PAGE: Final = 1000


class MnemicMemoryStore:
    """Versioned files for the harness's `Memory(store=…)`, with what is known of their writes.

    The directory of a file, `namespace/agent` in the harness, is the user of its memory, so that no
    read or search of one directory sees another. An operation is applied once, whoever repeats it:
    its receipt is stored by the same write. Of each path the last hundred are kept.

    Args:
        memory: An open memory without a user, plain or awaited; closing it is the caller's.
    """

    def __init__(self, memory: ScopedMemory | AsyncScopedMemory) -> None:
        self._memory = memory.aio if isinstance(memory, ScopedMemory) else memory

    async def read(self, path: str, *, max_chars: int) -> harness.MemoryFile | None:
        """Return the file at a path, or None."""
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        entry = await self._entry(path)
        if entry is None or (shown := entry.metadata[_KEY]["shown"]) is None:
            return None
        text = _text(entry)
        return harness.MemoryFile(text[:max_chars], truncated=len(text) > max_chars, **shown)

    async def get_operation(self, operation: harness.MemoryOperation) -> _Mutation | None:
        """Return the result of an operation that was applied, or None."""
        known = _file(operations={"contains": operation.id})
        for entry in await self._memory.list(limit=1, filters=known, all_users=True):
            for key, fingerprint, version, existed in entry.metadata[_KEY]["receipts"]:
                if (key, fingerprint) == (operation.id, operation.fingerprint):
                    return _Mutation(version, replayed=True, existed=existed)
            raise harness.MemoryOperationConflictError(f"{operation.id!r} had other arguments")
        return None

    async def write(
        self, path: str, content: str, *, expected_version: str | None, operation: _Operation = None
    ) -> _Mutation:
        """Create or replace a file whose version is the expected one; None is no file."""
        return await self._change(path, expected_version, operation, {"content": content})

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: _Operation = None,
    ) -> _Mutation:
        """Create or replace a file, with what is known of this write in place of the last one's."""
        if not all(isinstance(each, str) for pair in (metadata or {}).items() for each in pair):
            raise TypeError("memory metadata keys and values must be strings")
        new = {"content": content, "metadata": dict(metadata or {}) or None}
        return await self._change(path, expected_version, operation, new)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: _Operation = None
    ) -> _Mutation:
        """Delete a file of the expected version for good."""
        return await self._change(path, expected_version, operation, None)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the paths that begin with a prefix, in order."""
        _folder(prefix.removesuffix("/") or "x")
        if limit <= 0:
            raise ValueError("limit must be positive")
        field, most = ("metadata", _KEY, "path"), min(limit, _MOST_PATHS)
        found = await self._memory.distinct(field, prefix=prefix, limit=most, all_users=True)
        return [each.value for each in found]

    async def search(
        self,
        prefix: str,
        query: str,
        *,
        limit: int,
        max_files: int,
        max_chars: int,
        max_file_chars: int,
    ) -> harness.MemorySearchResult:
        """Find files of a directory by meaning and words, best first; all of them are ranked."""
        within = _folder(prefix + "x") | {"filters": _file(path={"prefix": prefix})}
        asked = query_text(query)
        if not asked or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return harness.MemorySearchResult([], scanned=0, truncated=False)
        most: dict[str, Any] = {"limit": min(limit + 1, _PAGE), "min_score": "relative"}
        hits = await self._memory.search(asked, **most, **within)
        matches = []
        for hit in hits[:limit]:
            path = hit.entry.metadata[_KEY]["path"]
            max_chars -= len(path) - len(prefix)
            if max_chars > 0:
                snippet = _snippet(_text(hit.entry)[:max_file_chars], query, max_chars)
                matches.append(harness.MemorySearchMatch(path, snippet, hit.score))
                max_chars -= len(snippet)
        scanned = min(max_files, await self._memory.count(**within))
        return harness.MemorySearchResult(matches, scanned, truncated=len(matches) < len(hits))

    async def _change(
        self, path: str, expected: str | None, operation: _Operation, new: dict[str, Any] | None
    ) -> _Mutation:
        entry = await self._entry(path)
        if operation and (known := await self.get_operation(operation)):
            return known
        old = entry.metadata[_KEY] if entry else {"shown": None, "receipts": []}
        existed, state, content = old["shown"] is not None, uuid4().hex, ""
        key, receipts = operation and operation.id, old["receipts"]
        version = None if new is None else state
        if operation:
            new_receipt = [key, operation.fingerprint, version, existed]
            receipts = [*receipts, new_receipt][-_MOST_RECEIPTS:]
        file: dict[str, Any] = {"state": state, "shown": None, "receipts": receipts}
        file["operations"] = [receipt[0] for receipt in receipts]
        if new is not None:
            content = f"{path.rpartition('/')[2]}\n{new['content']}"
            shown = {"version": version, "operation_id": key, "metadata": new.get("metadata")}
            file |= {"path": path, "shown": shown}
        is_expected = (old["shown"]["version"] if existed else None) == expected
        if is_expected and await self._replace(path, entry, content, file):
            return _Mutation(version, replayed=False, existed=existed)
        if operation and (known := await self.get_operation(operation)):
            return known  # applied by another call meanwhile
        raise harness.MemoryConflictError(f"memory path {path!r} has not version {expected!r}")

    async def _replace(
        self, path: str, entry: MemoryEntry | None, content: str, file: dict[str, Any]
    ) -> bool:
        """Store what a path has from now on, unless it has changed since it was read."""
        key, user, is_nothing = self._key(path), _folder(path), not (content or file["receipts"])
        if entry is not None:
            same: dict[str, Any] = {"filters": _file(state=entry.metadata[_KEY]["state"]), **user}
            if is_nothing:
                return bool(await self._memory.delete_many([key], permanent=True, **same))
            same |= {"content": content, "replace_metadata": {_KEY: file}}
            return bool(await self._memory.update_many([key], **same))
        new = {"id": key, "content": content, "metadata": {_KEY: file}}
        try:
            if not is_nothing:
                await self._memory.add(new if content else new | {"embed": ()}, **user)
        except DuplicateEntryError:  # made meanwhile, or deleted by other means
            restored = await self._memory.restore(key, **user)
            return restored and await self._replace(path, await self._entry(path), content, file)
        return True

    async def _entry(self, path: str) -> MemoryEntry | None:
        found = await self._memory.get_many([self._key(path)], **_folder(path))
        return next(iter(found), None)

    def _key(self, path: str) -> UUID:
        return named_id(_IDS, f"{self._memory.scope.project_id or ''}\n{path}")


def _folder(path: str) -> dict[str, Any]:
    """Return the user that a path stands for; one that no store of the harness has is refused."""
    if not all(_SEGMENT.fullmatch(segment) for segment in path.split("/")):
        raise ValueError(f"invalid memory path: {path!r}")
    return {"user_id": path.rpartition("/")[0] or None}


def _file(**tests: Any) -> dict[str, Any]:
    return {"metadata": {_KEY: tests}}


def _text(entry: MemoryEntry) -> str:
    return entry.content.partition("\n")[2]


def _snippet(text: str, query: str, size: int) -> str:
    """Return the part of a text around the first of a query's words in it, else its beginning."""
    places = [text.lower().find(word) for word in query.lower().split()]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, min(first - size // 3, len(text) - size))
    return text[start : start + size]
