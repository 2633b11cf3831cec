"""The verb completions: a script by which a shell completes verbs and options."""

import argparse
from pathlib import Path

from mnemic.cli.call import Call
from mnemic.cli.main import VERBS, declare
from mnemic.errors import MissingExtraError

_FILES = {"db", "file"}
_SHELLS = ("bash", "zsh", "fish", "tcsh")


def declare_completions(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of completions."""
    parser.add_argument("shell", choices=_SHELLS)


def completions(call: Call) -> None:
    """Print the script."""
    try:
        import shtab  # noqa: PLC0415 - of the extra
    except ImportError:
        raise MissingExtraError(
            "completions need shtab: python -m pip install 'mnemic[cli]'"
        ) from None
    whole = argparse.ArgumentParser(prog="mnemic")
    verbs = whole.add_subparsers()
    for name, verb in VERBS.items():
        parser = verbs.add_parser(name, help=verb.summary)
        declare(name, parser)
        for action in parser._actions:  # noqa: SLF001 - argparse lists them nowhere else
            if action.type is Path or action.dest in _FILES:
                vars(action)["complete"] = shtab.FILE
    print(shtab.complete(whole, call.given.shell))
