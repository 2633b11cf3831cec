"""Claude's memory tool, awaited and plain, over files that are memories."""

from collections.abc import Callable, Coroutine
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, Final, TypeAlias
from uuid import UUID

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types import beta

from anthropic_mnemic.texts import inserted, listed, numbered, replaced
from mnemic import AsyncScopedMemory, MemoryEntry, ScopedMemory
from mnemic.adapters import named_id, sync_method
from mnemic.errors import DuplicateEntryError

_AnyMemory: TypeAlias = ScopedMemory | AsyncScopedMemory
_IDS: Final = UUID("8a3f6c9d-7b0e-4d55-9d3a-2f1c7b5e9a64")
_ROOT: Final = "/memories"
_TOP: Final = "/_"  # above the root, so that a path is seen to leave it


class AsyncMnemicMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool with awaited calls.

    A file is a memory: its source is its path, its content path and text. Directories are where
    files are. Of edits that meet, each is made to the file as the others left it.

    Args:
        memory: An open memory, plain or awaited; closing it is the caller's.
        user_id: Whose files they are; nobody else's tool sees them.
        options: Those of the base class, such as `cache_control`.
    """

    def __init__(self, memory: _AnyMemory, *, user_id: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.memory = memory.aio if isinstance(memory, ScopedMemory) else memory
        self.user_id = user_id

    async def view(self, command: beta.BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file, or the names in a directory."""
        path = _resolved(command.path)
        files = await self._at(path, command.path)
        if path in files:
            return numbered(command.path, _text(files[path]), command.view_range)
        below = {each[len(path) + 1 :]: _text(file) for each, file in files.items()}
        return listed(command.path, below)

    async def create(self, command: beta.BetaMemoryTool20250818CreateCommand) -> str:
        """Make a file; one that is there stays."""
        await self._add(_resolved(command.path), command.file_text, f"File {command.path}")
        return f"File created successfully at: {command.path}"

    async def str_replace(self, command: beta.BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace what occurs once in a file."""
        old, new = command.old_str, command.new_str
        lines = await self._edit(command.path, lambda text: replaced(command.path, text, old, new))
        head = "The memory file has been edited. Here is the snippet showing the change"
        return f"{head} (with line numbers):\n{lines}"

    async def insert(self, command: beta.BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind a line of a file."""
        line, new = command.insert_line, command.insert_text
        await self._edit(command.path, lambda text: (inserted(text, line, new), ""))
        return f"The file {command.path} has been edited."

    async def delete(self, command: beta.BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or all files of a directory, for good and in one write."""
        if not await self._delete(_under(_resolved(command.path, "delete"))):
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    async def rename(self, command: beta.BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or the files of a directory one by one, each stored before it is deleted."""
        old, new = _resolved(command.old_path), _resolved(command.new_path)
        _resolved(command.old_path, "rename")
        moved, taken = False, f"The destination {command.new_path}"
        if await self._at(new):
            raise ToolError(f"{taken} already exists")
        while files := await self._at(old):
            if new.startswith(f"{old}/"):
                raise ToolError(f"{taken} is in {command.old_path}")
            for path, file in files.items():
                copy = await self._add(new + path[len(old) :], _text(file), taken)
                is_gone = await self._delete(_unchanged(file))
                moved = moved or is_gone
                if not is_gone:  # it was changed meanwhile, and is moved as it is now
                    await self._delete(_unchanged(copy))
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    async def clear_all_memory(self) -> str:
        """Delete all files for good."""
        await self._delete(_under(_ROOT))
        return "All memory cleared"

    async def _call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        return await getattr(self.memory, verb)(*arguments, user_id=self.user_id, **options)

    async def _at(self, path: str, shown: str = "") -> dict[str, MemoryEntry]:
        """Return the file of a path, or those below it; without any, what is shown is wrong."""
        files: dict[str, MemoryEntry] = {}
        cursor, has_more = None, True
        while has_more:
            page = await self._call("list", limit=1000, cursor=cursor, filters=_under(path))
            files |= {str(file.source): file for file in page}
            cursor, has_more = page.cursor, page.has_more
        if shown and not files and path != _ROOT:
            raise ToolError(f"The path {shown} does not exist. Please provide a valid path.")
        return files

    async def _add(self, path: str, text: str, taken: str) -> MemoryEntry:
        above = {"source": {"in": [str(parent) for parent in PurePosixPath(path).parents]}}
        if await self._call("count", filters=above):
            raise ToolError(f"The path {path} is below a file.")
        key = named_id(_IDS, f"{self.memory.scope.project_id or ''}\n{path}")
        if path != _ROOT and not await self._at(path):
            new = {"id": key, "content": f"{path}\n{text}", "source": path}
            try:
                return await self._call("add", new)  # type: ignore[no-any-return]
            except DuplicateEntryError:  # made meanwhile, or deleted by other means
                if await self._call("restore", key):
                    await self._edit(path, lambda _: (text, ""))
                    return (await self._at(path))[path]
        raise ToolError(f"{taken} already exists")

    async def _edit(self, shown: str, change: Callable[[str], tuple[str, str]]) -> str:
        path = _resolved(shown)
        while file := (await self._at(path, shown)).get(path):
            text, lines = change(_text(file))
            new = {"content": f"{path}\n{text}", "filters": _unchanged(file)}
            if await self._call("update_many", **new):
                return lines  # else it was changed meanwhile: once more, as it is now
        raise ToolError(f"The path {shown} is not a file.")

    async def _delete(self, filters: dict[str, Any]) -> bool:
        return bool(await self._call("delete_many", filters=filters, permanent=True))


def _plain(command: Callable[..., Coroutine[Any, Any, str]]) -> Callable[..., str]:
    return sync_method(lambda tool, *given: command(tool.awaited, *given))


class MnemicMemoryTool(BetaAbstractMemoryTool):
    """The memory tool with plain calls; else as `AsyncMnemicMemoryTool`."""

    def __init__(self, memory: _AnyMemory, *, user_id: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.awaited = AsyncMnemicMemoryTool(memory, user_id=user_id)

    view, create = _plain(AsyncMnemicMemoryTool.view), _plain(AsyncMnemicMemoryTool.create)
    str_replace = _plain(AsyncMnemicMemoryTool.str_replace)
    insert, delete = _plain(AsyncMnemicMemoryTool.insert), _plain(AsyncMnemicMemoryTool.delete)
    rename = _plain(AsyncMnemicMemoryTool.rename)
    clear_all_memory = _plain(AsyncMnemicMemoryTool.clear_all_memory)


def _resolved(shown: str, action: str = "") -> str:
    """Return a path without dots; one that leaves the root, or must not be it, is refused."""
    if not shown.startswith(_ROOT):
        raise ToolError(f"Path must start with {_ROOT}, got: {shown}")
    path = normpath(f"{_TOP}{_ROOT}/{shown.removeprefix(_ROOT).lstrip('/')}")
    if not f"{path}/".startswith(f"{_TOP}{_ROOT}/"):
        raise ToolError(f"Path {shown} would escape {_ROOT} directory")
    if action and path == _TOP + _ROOT:
        raise ToolError(f"Cannot {action} the {_ROOT} directory itself")
    return path.removeprefix(_TOP).encode("utf-8", "replace").decode()


def _text(file: MemoryEntry) -> str:
    return file.content[len(str(file.source)) + 1 :]


def _under(path: str) -> dict[str, Any]:
    return {"OR": [{"source": path}, {"source": {"prefix": f"{path}/"}}]}


def _unchanged(file: MemoryEntry) -> dict[str, Any]:
    """Return the filter for a file in this version; one that is made anew has another time."""
    return {"id": file.id, "version": file.version, "created_at": file.created_at}
