"""Files in which coding agents keep their servers and hooks, and how mnemic is put into them."""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mnemic.errors import InvalidArgumentError

NAME: Final = "mnemic"
_HOOKS: Final = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SessionEnd": "end",
}


class Entry(NamedTuple):
    """How a client starts the server.

    Attributes:
        program: What runs the command `mnemic`.
        place: Options that say where and whose the memories are.
        read_only: Whether the server offers no tool that writes.
    """

    program: Sequence[str]
    place: Sequence[str] = ()
    read_only: bool = False

    @property
    def parts(self) -> dict[str, Any]:
        """The program and its arguments, as clients name them."""
        command, *options = self.program
        profile = ["--read-only"] if self.read_only else []
        return {"command": command, "args": [*options, "mcp", *self.place, *profile]}

    def hook(self, event: str) -> str:
        """Return the line of a shell that runs a hook.

        Args:
            event: The hook.
        """
        return shlex.join([*self.program, "hook", event, *self.place])


Edit = Callable[[str, Entry | None], str]
"""Gives the new text of a file, with this entry in place of the one it has; None takes it out."""


class ClientFile(NamedTuple):
    """A file of a client.

    Attributes:
        path: Where it is.
        edit: Changes its text.
    """

    path: Path
    edit: Edit


def files_of(client: str, home: Path, *, hooks: bool) -> list[ClientFile]:
    """Return the files of a client that mnemic has a part in.

    Args:
        client: `claude`, `codex` or `cursor`.
        home: The home folder.
        hooks: Whether with the file of its hooks.
    """
    if client == "codex":
        folder = Path(os.environ.get("CODEX_HOME") or home / ".codex")
        files = [ClientFile(folder / "config.toml", toml_with_server)]
        return [*files, ClientFile(folder / "hooks.json", json_with_codex_hooks)][: 1 + hooks]
    if client == "cursor":
        return [ClientFile(home / ".cursor" / "mcp.json", json_with_server)]
    files = [ClientFile(home / ".claude.json", json_with_server)]
    return [*files, ClientFile(home / ".claude" / "settings.json", json_with_hooks)][: 1 + hooks]


def json_with_server(text: str, entry: Entry | None) -> str:
    """Return the text of a JSON file with the server under `mcpServers`; see `Edit`."""
    settings = _parsed(text)
    servers = _mapping(settings, "mcpServers")
    if entry is None:
        servers.pop(NAME, None)
    else:
        servers[NAME] = {"type": "stdio", **entry.parts}
    return _written(_without_empty(settings, "mcpServers"), text)


def json_with_hooks(text: str, entry: Entry | None) -> str:
    """Return the text of a JSON file with the hooks of Claude Code; see `Edit`."""
    return _with_hooks(text, entry, _HOOKS)


def json_with_codex_hooks(text: str, entry: Entry | None) -> str:
    """Return the text of a JSON file with the hooks of Codex, none at its end; see `Edit`."""
    return _with_hooks(text, entry, {name: of for name, of in _HOOKS.items() if of != "end"})


def _with_hooks(text: str, entry: Entry | None, events: Mapping[str, str]) -> str:
    settings = _parsed(text)
    hooks = _mapping(settings, "hooks")
    for name, event in events.items():
        kept = [group for group in _groups(hooks, name) if not _is_own(group, event)]
        if entry is not None:
            command = {"type": "command", "command": entry.hook(event), "timeout": 10}
            kept.append({"hooks": [command]})
        hooks[name] = kept
        if not kept:
            del hooks[name]
    return _written(_without_empty(settings, "hooks"), text)


def _groups(hooks: dict[str, Any], name: str) -> list[Any]:
    groups = hooks.get(name, [])
    if not isinstance(groups, list):
        raise InvalidArgumentError(f"hooks.{name} is no list; nothing was changed")
    return groups


def _is_own(group: Any, event: str) -> bool:
    hooks = group.get("hooks", ()) if isinstance(group, dict) else ()
    commands = [str(hook.get("command")) for hook in hooks if isinstance(hook, dict)]
    return any(NAME in command and f" hook {event}" in command for command in commands)


def _parsed(text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise InvalidArgumentError(f"it is no JSON ({error}); nothing was changed") from None
    if not isinstance(settings, dict):
        raise InvalidArgumentError("it is no JSON object; nothing was changed")
    return settings


def _mapping(settings: dict[str, Any], name: str) -> dict[str, Any]:
    inner = settings.setdefault(name, {})
    if not isinstance(inner, dict):
        raise InvalidArgumentError(f"{name} is no object; nothing was changed")
    return inner


def _without_empty(settings: dict[str, Any], name: str) -> dict[str, Any]:
    if not settings[name]:
        del settings[name]
    return settings


def _written(settings: dict[str, Any], before: str) -> str:
    """Return settings as text, indented as they were."""
    indent = re.search(r"^([ \t]+)\"", before, re.MULTILINE)
    text = json.dumps(settings, ensure_ascii=False, indent=indent[1] if indent else 2)
    return text + "\n" if before.endswith("\n") or not before else text


def toml_with_server(text: str, entry: Entry | None) -> str:
    """Return the text of a TOML file with the server under `mcp_servers`; see `Edit`.

    The rest of the text stays as it is. A change that would mean anything else is refused.
    """
    wanted = _toml(text)
    servers = _mapping(wanted, "mcp_servers")
    servers.pop(NAME, None)
    made = _without_table(text)
    if entry is not None:
        servers[NAME] = parts = entry.parts
        gap = "\n" if made.strip() and not made.endswith("\n\n") else ""
        ending = "" if made.endswith("\n") or not made else "\n"
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in parts.items()]
        made += f"{ending}{gap}[mcp_servers.{NAME}]\n{''.join(lines)}"
    if _toml(made) != _without_empty(wanted, "mcp_servers"):
        raise InvalidArgumentError(f"mcp_servers.{NAME} cannot be changed; nothing was changed")
    return made


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"it is no TOML ({error}); nothing was changed") from None


def _without_table(text: str) -> str:
    """Return a text without the table of the server, and the tables inside it."""
    kept, is_own = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            is_own = re.match(rf"\s*\[mcp_servers\.\"?{NAME}\"?[.\]]", line) is not None
        if not is_own:
            kept.append(line)
    made = "".join(kept)
    return made.rstrip("\n") + "\n" if len(made) < len(text) and made.strip() else made
