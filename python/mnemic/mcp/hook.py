"""Answers the hooks of a coding agent; a failure is silent for it, and noted in a small log.

This module imports little: it runs in a new process at each prompt.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from mnemic.mcp.local import Address, ask
from mnemic.mcp.project import project_folder, user_here

if TYPE_CHECKING:
    from mnemic import Memory

CAPTURE: Final = "MNEMIC_CAPTURE"
EVENTS: Final = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}
STORING: Final = ("stop", "end")
_MOST_INPUT: Final = 1 << 22
_LONGEST_PROMPT: Final = 10_000
_MOST_LOG: Final = 32_768
_READ_SECONDS: Final = 3.0
_STORE_SECONDS: Final = 20.0
_NONE: Final = "there is no hook {!r}; there are session-start, prompt, stop and end"


class Surroundings(NamedTuple):
    """What a hook uses.

    Attributes:
        place: Where the memories are.
        agent: The agent of the memories.
        user: A user that is named for it.
        open_memory: Opens them without a model; what is stored so gets vectors when a server or a
            program with one next searches.
        log: A file for failures.
    """

    place: str
    agent: str
    user: str | None
    open_memory: Callable[[], "Memory"]
    log: Path


def answer(event: str, here: Surroundings) -> None:
    """Read what the agent says on stdin, and print the answer.

    Args:
        event: One of `session-start`, `prompt`, `stop` and `end`.
        here: What it uses.
    """
    try:
        with _limited(_STORE_SECONDS if event in STORING else _READ_SECONDS):
            text = _text(event, json.loads(sys.stdin.buffer.read(_MOST_INPUT)), here)
        if text:
            sys.stdout.write(f"{json.dumps(_output(event, text))}\n")
            sys.stdout.flush()
    except Exception as error:  # noqa: BLE001 - the agent goes on, whatever it is
        note(here.log, event, error)


def _output(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": EVENTS[event], "additionalContext": text}}


def _text(event: str, said: dict[str, Any], here: Surroundings) -> str:
    folder = Path(said.get("cwd") or Path.cwd())
    address = Address(here.place, here.agent, user_here(here.user, project_folder(folder)))
    request = _request(event, said)
    if request is None:
        return ""
    try:
        asked = ask(address, request)
    except OSError as error:  # of the folder: the file is there all the same
        note(here.log, event, error)
    else:
        if asked is not None:
            return asked
    if request["verb"] != "store" and not _is_there(here.place):
        return ""
    from mnemic.mcp.responses import respond  # noqa: PLC0415 - where no server runs

    with here.open_memory() as memory:
        own = memory if address.user is None else memory.scoped(user_id=address.user)
        return respond(own, request)


def _request(event: str, said: dict[str, Any]) -> dict[str, Any] | None:
    if event == "session-start":
        return {"verb": event}
    if event == "prompt":
        text = said["prompt"].strip()[:_LONGEST_PROMPT]
        return {"verb": event, "text": text} if text else None
    if event not in STORING:
        raise ValueError(_NONE.format(event))
    if os.environ.get(CAPTURE, "").lower() in {"off", "0", "no", "false"}:
        return None
    from mnemic.mcp.transcript import last_turn  # noqa: PLC0415 - after a turn alone

    messages = last_turn(said)
    if not messages:
        return None
    return {"verb": "store", "session": said.get("session_id", ""), "messages": messages}


def _is_there(place: str) -> bool:
    return "://" in place or Path(place).exists()


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    """End what takes too long, where the system has a timer."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: object) -> NoReturn:
        raise TimeoutError(f"took longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def note(log: Path, event: str, error: BaseException) -> None:
    """Write a failure to the log, of which the end is kept.

    Args:
        log: The file.
        event: The hook.
        error: What happened; errors of mnemic say nothing of what memories contain.
    """
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = log.read_bytes()[-_MOST_LOG:] if log.exists() else b""
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = f"{moment} {event[:20]!r} {said}\n"
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(kept + line.encode(errors="replace"))
    except OSError:
        return
