"""Whose memories a server or a hook uses: a named user's, or those of the project it runs in."""

import hashlib
import os
import re
from pathlib import Path
from typing import Final

USER: Final = "MNEMIC_USER"
PROJECT: Final = "CLAUDE_PROJECT_DIR"
_HASH_BYTES: Final = 4
_MOST_NAME: Final = 60


def user_here(named: str | None = None, folder: Path | None = None) -> str | None:
    """Return the user id of a server or a hook.

    Args:
        named: A user that was named on the command line.
        folder: Where it runs; the working directory unless given.

    Returns:
        The named user; else that of the environment; else the project of the folder; else None,
        which is the memories without a user, those of the command line.
    """
    return named or os.environ.get(USER) or project_of(folder or project_folder(Path.cwd()))


def project_folder(folder: Path) -> Path:
    """Return the folder that Claude Code says is the project's; else the given one.

    Args:
        folder: The working directory.
    """
    named = os.environ.get(PROJECT)
    return Path(named) if named else folder


def project_of(folder: Path) -> str | None:
    """Return the user id of the project that a folder lies in, None outside of a repository.

    It is the name of the repository's main folder and a hash of its path, so that two projects of
    one name stay apart, and the worktrees of a repository share their memories.

    Args:
        folder: The folder, or one inside it.
    """
    try:
        inside = folder.resolve()
        root = next(one for one in (inside, *inside.parents) if (one / ".git").exists())
    except (StopIteration, OSError, RuntimeError):
        return None
    main = _main_folder(root)
    digest = hashlib.blake2b(os.fsencode(main), digest_size=_HASH_BYTES).hexdigest()
    name = re.sub(r"[^\w.-]+", "-", main.name)[:_MOST_NAME]
    return f"{name}-{digest}"


def _main_folder(root: Path) -> Path:
    """Return the folder of the repository that a worktree belongs to; else the folder itself."""
    link = root / ".git"
    try:
        target = root / link.read_text().removeprefix("gitdir:").strip()
        common = target / (target / "commondir").read_text().strip()
    except (OSError, ValueError):  # a folder, or the link of a submodule
        return root
    main = common.resolve()
    return main.parent if main.name == ".git" else main
