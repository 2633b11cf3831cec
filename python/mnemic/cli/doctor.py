"""The verb doctor: what runs here, what of it is wrong, and how fast it is."""

import os
import platform
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mnemic import Memory
from mnemic.cli.call import Call
from mnemic.cli.place import PLACE, hooks_log, shown
from mnemic.errors import MnemicError
from mnemic.mcp.project import user_here
from mnemic.vectors import simd_kernel

_PACKAGES = (
    "mnemic",
    "mnemic-minilm",
    "mnemic-e5",
    "numpy",
    "apsw",
    "msgspec",
    "psycopg",
    "cryptography",
    "mcp",
)
_SEARCHES = 50
_SYNCED = ("Dropbox", "OneDrive", "Google Drive", "iCloud", "Nextcloud", "Syncthing")


def doctor(call: Call) -> int:
    """Print facts; return 1 if something is wrong."""
    facts = dict(_of_machine())
    problems: list[str] = []
    for part in (_of_agents(), _of_file(call, problems)):
        try:
            facts.update(part)
        except (MnemicError, OSError) as error:
            problems.append(str(error))
    if call.out.is_json:
        call.out.json({"facts": facts, "problems": problems})
        return int(bool(problems))
    for name, value in facts.items():
        call.out.line(f"{name:18}{value}")
    for problem in problems:
        call.out.line(f"problem: {problem}")
    return int(bool(problems))


def _of_machine() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in _PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"
    yield "processors", str(os.cpu_count())
    yield "kernel", simd_kernel()


def _of_agents() -> Iterator[tuple[str, str]]:
    yield "mcp and hooks", f"user {user_here()!r} in this folder"
    log = Path(hooks_log())
    failures = log.read_text(errors="replace").splitlines() if log.exists() else []
    yield "hooks that failed", f"{len(failures)}, the last: {failures[-1]}" if failures else "none"


def _of_file(call: Call, problems: list[str]) -> Iterator[tuple[str, str]]:
    place = call.place
    is_named = call.given.db or PLACE not in os.environ
    yield "place", shown(place) if is_named else f"{shown(place)} ({PLACE})"
    path = Path(place)
    is_file = "://" not in place and place != ":memory:"
    if is_file and not path.exists() and path.resolve().parent.is_dir():
        yield "file", "not there yet; the first memory makes it"
        return
    if is_file and path.exists():
        yield "file", f"{path.stat().st_size:,} bytes, mode {path.stat().st_mode & 0o777:o}"
        log = path.with_name(f"{path.name}-wal")
        yield "log", f"{log.stat().st_size:,} bytes" if log.exists() else "none"
        problems += [
            f"{place} lies in a folder that {name} copies between computers, which can damage it"
            for name in _SYNCED
            if name.casefold() in str(path.resolve()).casefold()
        ]
    began = time.perf_counter()
    memory = call.memory(track_access=False)
    yield "opened in", f"{1e3 * (time.perf_counter() - began):.0f} ms"
    yield "model", str(memory.embedder.model if memory.embedder is not None else "none")
    yield "memories", f"{memory.count(**call.scope):,} of {len(memory.users()):,} users"
    yield "search", _search_time(call, memory)


def _search_time(call: Call, memory: Memory) -> str:
    times = []
    for number in range(_SEARCHES):
        began = time.perf_counter()
        memory.search(f"what is known of {number}?", **call.scope)
        times.append(1e3 * (time.perf_counter() - began))
    times.sort()
    return f"p50 {times[len(times) // 2]:.2f} ms, p95 {times[len(times) * 95 // 100]:.2f} ms"
