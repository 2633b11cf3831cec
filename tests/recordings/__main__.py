"""Shows whether two checkouts answer, log, publish and measure the same.

`record OUT.jsonl` writes what programs show of this checkout. `compare BEFORE AFTER` plays the same
programs against two checkouts, each with a core of its own in `python/mnemic`, prints every kind
of difference with the shortest program that shows it, and exits with 1 if there is any.
`documented BEFORE AFTER` does so for the tests and the pages of both.
"""

import argparse
import json
import sys
from pathlib import Path

from tests.recordings.comparing import Comparison
from tests.recordings.documented import compare_documented
from tests.recordings.own_set import own_programs
from tests.recordings.programs import programs


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="python -m tests.recordings", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, places in (("record", ["out"]), ("compare", ["before", "after"])):
        command = commands.add_parser(name)
        for place in places:
            command.add_argument(place, type=Path)
        command.add_argument("--programs", type=int, default=2000, help="random programs")
        command.add_argument("--seed", type=int, default=1, help="of the random programs")
        command.add_argument("--own", action="store_true", help="the set of benches/quality too")
        command.add_argument("--explained", type=int, default=10, help="kinds of differences")
    documented = commands.add_parser("documented")
    for place in ("before", "after"):
        documented.add_argument(place, type=Path)
    documented.add_argument("tests", nargs="*", help="files and folders; those of the services")
    commands.add_parser("play")
    return parser.parse_args(arguments)


def main(arguments=None):
    given = parsed(arguments)
    if given.command == "play":
        play(sys.stdin, sys.stdout)
        return False
    if given.command == "documented":
        return compare_documented(given.before.resolve(), given.after.resolve(), given.tests)
    chosen = [*(own_programs() if given.own else ()), *programs(given.programs, given.seed)]
    if given.command == "record":
        return record(chosen, given.out)
    return compare(chosen, given.before.resolve(), given.after.resolve(), given.explained)


def play(source, target):
    """Play programs, one a line, and write the lines of each as one line."""
    from tests.recordings.playing import played  # noqa: PLC0415 - the others need no mnemic

    for line in source:
        target.write(json.dumps(played(json.loads(line))) + "\n")
        target.flush()


def record(chosen, out):
    from tests.recordings.playing import played  # noqa: PLC0415 - as above

    with out.open("w") as file:
        for program in chosen:
            for line in played(program):
                file.write(json.dumps({"program": program["name"], **line}) + "\n")


def compare(chosen, before, after, explained):
    comparison = Comparison(before, after)
    for number, program in enumerate(chosen, 1):
        comparison.add(program)
        print(f"\r{number} of {len(chosen)} programs", end="", file=sys.stderr)
    print(file=sys.stderr)
    for place, (kind, number) in enumerate(comparison.found.most_common()):
        print(f"\n{number} programs: {kind}")
        if place < explained:
            program, sides = comparison.explained(kind)
            print(json.dumps(program["setup"]), *map(json.dumps, program["steps"]), sep="\n  ")
            one, other = map(json.dumps, sides or ["seen once, and not again"] * 2)
            print(f"- {one}\n+ {other}")
    comparison.close()
    found = len(comparison.found)
    print(f"{len(chosen)} programs, {comparison.lines} lines, {found} kinds of differences")
    return bool(comparison.found)


if __name__ == "__main__":
    sys.exit(main())
