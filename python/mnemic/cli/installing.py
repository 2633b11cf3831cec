"""The verb install: it shows a change to a client's files before it writes it, and undoes it."""

import argparse
import difflib
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from mnemic.cli.call import Call
from mnemic.cli.output import note
from mnemic.errors import InvalidArgumentError
from mnemic.mcp.clients import ClientFile, Entry, files_of

_COPY: Final = ".before-mnemic"
_NEW: Final = ".new"
_LOGIN: Final = (
    "--db has a password, which the client's file would show to others; leave it out of the URL, "
    "and put it into ~/.pgpass or the environment of the client, as PGPASSWORD"
)


def declare_install(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of install."""
    parser.add_argument("client", choices=("claude", "codex", "cursor"))
    parser.add_argument("--hooks", action="store_true", help="with hooks, which store turns")
    parser.add_argument("--read-only", action="store_true", help="offers no tool that writes")
    parser.add_argument("--undo", action="store_true", help="takes the change back")
    parser.add_argument("-y", "--yes", action="store_true", help="writes without a question")


def install(call: Call) -> int:
    """Put the server into a client's files, or take it out; return 1 if nothing was written."""
    given = call.given
    if given.hooks and given.client == "cursor":
        raise InvalidArgumentError("mnemic has no hooks for cursor; leave out --hooks")
    files = files_of(given.client, Path.home(), hooks=given.hooks or given.undo)
    entry = None if given.undo else _entry(call)
    changes = [(file, _before(file.path), _after(file, entry)) for file in files]
    changes = [change for change in changes if change[1] != change[2]]
    if not changes:
        note("nothing to change")
        return 0
    for file, before, after in changes:
        _show(call, file.path, before, after)
    if not given.yes and not _agreed():
        note("nothing was changed")
        return 1
    for file, before, after in changes:
        _write(file.path, before, after, is_undone=given.undo)
        note(f"wrote {file.path}")
    return 0


def _entry(call: Call) -> Entry:
    given = call.given
    place = []
    if given.db:
        if _has_password(given.db):
            raise InvalidArgumentError(_LOGIN)
        place += ["--db", given.db if "://" in given.db else str(Path(given.db).resolve())]
    if given.user:
        place += ["--user", given.user]
    return Entry(_program(), place, given.read_only)


def _has_password(place: str) -> bool:
    login, at, rest = place.partition("://")[2].rpartition("@")
    _, _, options = rest.partition("?")
    return (bool(at) and ":" in login) or "password=" in options.lower()


def _program() -> list[str]:
    """Return how a client that knows no PATH runs the command."""
    beside = Path(sys.executable).with_name("mnemic")
    found = str(beside) if beside.exists() else shutil.which("mnemic")
    return [found] if found else [sys.executable, "-m", "mnemic.cli"]


def _before(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except ValueError:
        raise InvalidArgumentError(f"{path} is no text; nothing was changed") from None


def _after(file: ClientFile, entry: Entry | None) -> str | None:
    before = _before(file.path)
    if entry is None and before is None:
        return None
    try:
        after = file.edit(before or "", entry)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{file.path}: {error}") from None
    copy = _copy_of(file.path)
    if entry is not None or not copy.exists():
        return after
    first = copy.read_bytes().decode()
    if file.edit(first, None) != after:  # others have changed it since
        return after
    return first or None


def _show(call: Call, path: Path, before: str | None, after: str | None) -> None:
    lines = difflib.unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        str(path),
        f"{path} (new)",
        lineterm="",
    )
    for line in lines:
        call.out.line(line)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        note("--yes writes this")
        return False
    return input("Write this? [y/N] ").strip().lower() in {"y", "yes"}


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + _COPY)


def _write(path: Path, before: str | None, after: str | None, *, is_undone: bool) -> None:
    """Write a file, complete or not at all.

    The first change keeps a copy of what was there, an empty one of what was not.
    """
    target, copy = path.resolve(), _copy_of(path)
    if after is None:
        target.unlink()
        copy.unlink()
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if not is_undone and not copy.exists():
        copy.touch(0o600) if before is None else shutil.copy2(target, copy)
    new = target.with_name(target.name + _NEW)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(after.encode())
        file.flush()
        os.fsync(file.fileno())
    if target.exists():
        shutil.copymode(target, new)
    new.replace(target)
    if is_undone:
        copy.unlink(missing_ok=True)
