"""Memory files of tests."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from mnemic_files import MemoryFile, new_memory_id, serialise_memory_file

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

TEXT = """---
id: mem_9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d
created_at: 2026-05-01T12:00:00Z
updated_at: 2026-05-02T08:30:00.25Z
version: 2
scope: repo
category: project-conventions
supersedes: mem_16fd2706-8baf-433b-82eb-8c7fada847da
related:
  - id: mem_886313e1-3b8a-5372-9b90-0c9aee199e5d
    relationship: refines
session_id: session-7
trigger: cadence
---

# Tests

They run with `make test`.
"""


def memory_file(file_id=None, content="Tabs, not spaces.", *, minutes=0, **fields):
    """Return a file of the repository; `minutes` after noon it was created."""
    chosen = {"scope": "repo", "category": "patterns", "session_id": "s", "trigger": "cadence"}
    return MemoryFile(
        id=new_memory_id() if file_id is None else file_id,
        created_at=NOON + timedelta(minutes=minutes),
        content=content,
        **(chosen | fields),
    )


EVERY_STATE = {"status": {"in": ["active", "archived", "superseded"]}}


def with_line(line):
    """Return the text with one line of the front matter replaced, or added."""
    key = line.split(":")[0]
    lines = [line if old.startswith(f"{key}:") else old for old in TEXT.splitlines()]
    if line not in lines:
        lines.insert(1, line)
    return "\n".join(lines)


def put(files, file):
    """Write a file as an editor does, over whatever is there."""
    directory = files.directory(file.scope)
    path = Path(directory.path_of(file.id))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(serialise_memory_file(file), encoding="utf-8", newline="")


def drop(files, file):
    Path(files.directory(file.scope).path_of(file.id)).unlink()


def contents(memory, **scope):
    return {entry.content for entry in memory.list(**scope)}


def ids(files):
    return [file.id for file in files]
