"""Verbs that look after a file: verify, reembed, rekey."""

import argparse

from mnemic.cli.call import KEY, Call, key_of
from mnemic.cli.output import note
from mnemic.errors import InvalidArgumentError

_NEW_KEY = "MNEMIC_NEW_KEY"


def declare_verify(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of verify."""
    parser.add_argument("--repair", action="store_true", help="repair what can be")


def verify(call: Call) -> int:
    """Compare the whole file with its checksums; return 1 if something is wrong."""
    report = call.stored(track_access=False).verify(
        repair=call.given.repair, progress=call.out.progress
    )
    if call.out.is_json:
        call.out.json(report.to_dict())
    else:
        for problem in report.problems:
            call.out.line(str(problem))
        state = f"{len(report.problems)} problems" if report.problems else "no problem"
        call.out.line(f"{report.memories} memories, {report.vectors} vectors: {state}")
    return int(bool(report.problems))


def reembed(call: Call) -> int:
    """Embed all memories by the chosen model; return 1 if the vectors before stay in use."""
    report = call.memory(reembed=True).reembed(progress=call.out.progress)
    if call.out.is_json:
        call.out.json(report.to_dict())
    else:
        call.out.line(f"embedded {report.embedded} memories with {report.model}")
        for identity in report.failed:
            call.out.line(f"failed: {identity}")
    if not report.is_complete:
        note("the vectors before stay in use; the same command goes on")
    return int(not report.is_complete)


def rekey(call: Call) -> None:
    """Seal with the key in MNEMIC_NEW_KEY what is sealed with that in MNEMIC_KEY."""
    new = key_of(_NEW_KEY)
    if new is None or key_of(KEY) is None:
        raise InvalidArgumentError(f"{KEY} and {_NEW_KEY} must be keys of 32 bytes in base64")
    count = call.stored().rotate_key(new, progress=call.out.progress)
    note(f"{count} memories are sealed with the new key; {KEY} is to be that one now")
