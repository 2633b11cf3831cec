"""Chooses the verb, runs it, and turns errors into one sentence and an exit code."""

import argparse
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Final, NamedTuple, NoReturn

DONE, FAILED, USAGE, MISSING, BUSY = 0, 1, 2, 3, 4
"""Exit codes; USAGE is a mistake in the command, and what is BUSY may be tried again."""
INTERRUPTED: Final = 130  # as shells have it: 128 and the number of SIGINT

_GARBAGE: Final = 100_000
"""Objects made between two collections: a search makes fewer, and collecting took a tenth of it."""


class Verb(NamedTuple):
    """A verb, and the module that declares its arguments and runs it."""

    summary: str
    module: str


VERBS: Final = {
    "add": Verb("store memories: arguments, a file, or a text or lines on stdin", "writing"),
    "search": Verb("find memories, the best first", "searching"),
    "context": Verb("pack what answers a question into a prompt's block", "searching"),
    "list": Verb("show memories, the newest first", "reading"),
    "get": Verb("show memories whole, by their ids", "reading"),
    "edit": Verb("change a memory", "writing"),
    "forget": Verb("delete memories, and say whether their bytes are gone", "forgetting"),
    "link": Verb("connect two memories, or show the links of one", "writing"),
    "contradictions": Verb("show the memories that a text contradicts", "searching"),
    "history": Verb("show the versions of a memory", "reading"),
    "timeline": Verb("show memories by day", "reading"),
    "duplicates": Verb("show memories that say the same", "reading"),
    "stats": Verb("count memories by type and state", "reading"),
    "users": Verb("list the users, and what each has stored", "reading"),
    "export": Verb("write all memories to a file", "moving"),
    "import": Verb("read memories from a file or another library", "moving"),
    "backup": Verb("copy the database, while it is used", "moving"),
    "verify": Verb("check the file, and repair what can be", "upkeep"),
    "reembed": Verb("embed all memories with the present model", "upkeep"),
    "rekey": Verb("seal with another key", "upkeep"),
    "mcp": Verb("serve memories to Claude Code, Codex, Cursor and others", "serving"),
    "install": Verb("add the server to Claude Code, Codex or Cursor", "installing"),
    "doctor": Verb("say what runs here, and what is wrong with it", "doctor"),
    "completions": Verb("print what a shell needs to complete commands", "completions"),
    "demo": Verb("store and ask an example conversation", "demo"),
}


_OTHER_MODEL: Final = (
    "the vectors of these memories are of another model than those that may be used here; mnemic "
    "reembed makes them anew, --embedder chooses by which, and mnemic search --keyword needs none"
)

_DEBUG: Final = "MNEMIC_DEBUG"
_RESERVED: Final = {"import", "list"}
"""Verbs whose functions end in an underscore."""


class _Parser(argparse.ArgumentParser):
    """Says a mistake in one sentence, and where help is."""

    def error(self, message: str) -> NoReturn:
        from mnemic.cli.output import one_line  # noqa: PLC0415 - after a mistake alone

        self.exit(USAGE, f"{self.prog}: {one_line(message)}; see {self.prog} --help\n")


def command() -> int:
    """Run the command as a process of its own; return the exit code."""
    gc.set_threshold(_GARBAGE)
    try:
        return main()
    finally:
        gc.freeze()  # what is left needs no collection at exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with its arguments; return the exit code."""
    _open_streams()
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("mnemic: stopped", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - each is said, not shown
        return _failed(error)
    return code


def _open_streams() -> None:
    """Open what a shell has closed, lest a file get its number; spell out what has no code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(given: Sequence[str]) -> int:
    if given and given[0] in {"--version", "-V"}:
        from mnemic import __version__  # noqa: PLC0415 - the rest is not needed

        print(f"mnemic {__version__}")
        return DONE
    if given and given[0] == "hook":
        from mnemic.cli.hooking import hook  # noqa: PLC0415 - runs at each prompt of an agent

        hook(given[1:])
        return DONE
    if not given or given[0] in {"--help", "-h", "help"}:
        print(_overview())
        return DONE
    name = given[0]
    if name not in VERBS:
        print(f"mnemic: there is no command {name!r}{_nearest(name)}", file=sys.stderr)
        return USAGE
    return _run_verb(name, given[1:])


def _overview() -> str:
    width = max(map(len, VERBS)) + 2
    lines = [f"  {name:{width}}{verb.summary}" for name, verb in VERBS.items()]
    return "\n".join(
        [
            "Memories that stay on this computer: store them, and find the few that matter.",
            "",
            "  mnemic add 'Ana moved to Oslo in May'",
            "  mnemic search 'Where does Ana live?'",
            "",
            *lines,
            "",
            "mnemic COMMAND --help shows the options of one. MNEMIC_DB and MNEMIC_USER name the",
            "file and the user where --db and --user do not.",
        ]
    )


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - after a mistake alone

    near = get_close_matches(name, VERBS, 1)
    return f"; did you mean {near[0]}?" if near else "; mnemic --help lists them"


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of a verb, its own if it has some and those of all."""
    module = import_module(f"mnemic.cli.{VERBS[name].module}")
    own: Callable[[argparse.ArgumentParser], None]
    own = getattr(module, f"declare_{name}", lambda _: None)
    own(parser)
    from mnemic.cli.call import declare_place  # noqa: PLC0415 - loads the package

    declare_place(parser)


def _run_verb(name: str, given: Sequence[str]) -> int:
    module = import_module(f"mnemic.cli.{VERBS[name].module}")
    # With None argparse asks for the terminal's at each option, by a module that takes 3 ms.
    width = None if {"-h", "--help"} & set(given) else 80
    parser = _Parser(
        prog=f"mnemic {name}",
        description=f"{VERBS[name].summary.capitalize()}.",
        formatter_class=partial(argparse.HelpFormatter, width=width),
    )
    declare(name, parser)
    from mnemic.cli.call import Call  # noqa: PLC0415 - loads the package

    try:
        call = Call(parser.parse_args(given))
    except SystemExit:
        sys.stdout.flush()  # help, which a closed pipe may not take
        raise
    run: Callable[[Call], int | None] = getattr(module, f"{name}_" if name in _RESERVED else name)
    try:
        return run(call) or DONE
    finally:
        call.close()


def _failed(error: Exception) -> int:
    """Say an error in one sentence; return its exit code."""
    from mnemic import errors  # noqa: PLC0415 - after a failure alone
    from mnemic.cli.output import note  # noqa: PLC0415 - as above

    if isinstance(error, BrokenPipeError) or isinstance(error.__cause__, BrokenPipeError):
        # For what is not flushed yet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    is_defect = not isinstance(error, (errors.MnemicError, OSError))
    if is_defect and os.environ.get(_DEBUG):
        raise error
    if isinstance(error, errors.EmbeddingModelMismatchError):
        note(_OTHER_MODEL)
    elif is_defect:
        note(f"{type(error).__name__}: {error}; this is a defect of it, {_DEBUG}=1 shows where")
    elif isinstance(error, OSError) and error.strerror:
        note(": ".join(str(part) for part in (error.filename, error.strerror) if part))
    else:
        note(str(error))
    if isinstance(error, errors.EntryNotFoundError):
        return MISSING
    is_busy = isinstance(error, (errors.StoreBusyError, errors.StoreUnavailableError))
    return BUSY if is_busy else FAILED
