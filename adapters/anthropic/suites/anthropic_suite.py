"""Runs Anthropic's own tests of the memory tool over mnemic: the filesystem tools are the adapter.

The tests look into a directory, and write into it. So each call reads the files of the directory
that the memory does not have, and writes what the memory has into it afterwards. The plugin is
loaded before the tests are collected, and fails the run where a command never reached the adapter.
"""

import shutil
from collections import Counter
from pathlib import Path

import anthropic.lib.tools._beta_builtin_memory_tool as builtin
import anyio
import pytest
from anthropic_mnemic import AsyncMnemicMemoryTool, MnemicMemoryTool

from mnemic import Memory

COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
calls = Counter()


class Mirrored:
    """A tool over a memory of its own, beside a directory with the same files."""

    def __init__(self, base_path="./memory"):
        self.plain = Memory(":memory:", embedder=None)
        super().__init__(self.plain, user_id="claude")
        self.base_path = Path(base_path)
        self.root = self.base_path / "memories"
        self.root.mkdir(parents=True, exist_ok=True)
        self.memory_root = self.kind(self.root)

    def counted(self, name):
        calls[name] += 1
        tool = MnemicMemoryTool(self.plain, user_id="claude")
        for path in self.root.rglob("*"):
            shown = f"/memories/{path.relative_to(self.root).as_posix()}"
            if path.is_file() and not self.plain.count(filters={"source": shown}, user_id="claude"):
                text = path.read_bytes().decode()
                tool.create(
                    builtin.BetaMemoryTool20250818CreateCommand(
                        command="create", path=shown, file_text=text
                    )
                )

    def mirror(self):
        shutil.rmtree(self.root)
        self.root.mkdir()
        for entry in self.plain.list(limit=1000, user_id="claude"):
            path = self.base_path / entry.source[1:]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.content[len(entry.source) + 1 :].encode())


class Plain(Mirrored, MnemicMemoryTool):
    kind = Path


class Awaited(Mirrored, AsyncMnemicMemoryTool):
    kind = anyio.Path


def plain(name):
    def call(self, command):
        self.counted(name)
        try:
            return getattr(super(Plain, self), name)(command)
        finally:
            self.mirror()

    return call


def awaited(name):
    async def call(self, command):
        self.counted(f"async {name}")
        try:
            return await getattr(super(Awaited, self), name)(command)
        finally:
            self.mirror()

    return call


def pytest_configure(config):
    """Put the adapter in the place of the filesystem tools."""
    del config
    for name in COMMANDS:
        setattr(Plain, name, plain(name))
        setattr(Awaited, name, awaited(name))
    builtin.BetaLocalFilesystemMemoryTool = Plain
    builtin.BetaAsyncLocalFilesystemMemoryTool = Awaited


def pytest_sessionfinish(session):
    """Fail the run where a command was not called."""
    if {*COMMANDS, *(f"async {name}" for name in COMMANDS)} - set(calls):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Print how often each command of the adapter was called."""
    shown = ", ".join(f"{name} {count}" for name, count in calls.most_common())
    terminalreporter.write_line(f"calls of mnemic's adapter: {shown}")
