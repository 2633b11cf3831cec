"""Shows whether two checkouts answer, log, publish and measure the same.

`compare BEFORE AFTER` plays the same programs against two checkouts, each with a core of its own in
`python/mnemic`, prints every kind of difference with the shortest program that shows it, and exits
with 1 if there is any. `documented BEFORE AFTER` does so for the tests and the pages of both.
"""

import argparse
import json
import sys
from pathlib import Path

from tests.recordings.comparing import Comparison
from tests.recordings.documented import compare_documented
from tests.recordings.own_set import own_programs
from tests.recordings.programs import programs


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.recordings", description=__doc__)
    parser.add_argument("command", choices=("compare", "documented"))
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--programs", type=int, default=2000, help="random programs")
    parser.add_argument("--seed", type=int, default=1, help="of the random programs")
    parser.add_argument("--own", action="store_true", help="the set of benches/quality too")
    parser.add_argument("--explained", type=int, default=10, help="kinds of differences")
    given = parser.parse_args()
    checkouts = given.before.resolve(), given.after.resolve()
    if given.command == "documented":
        return compare_documented(*checkouts)
    chosen = [*(own_programs() if given.own else ()), *programs(given.programs, given.seed)]
    return compare(chosen, *checkouts, given.explained)


def compare(chosen, before, after, explained):
    comparison = Comparison(before, after)
    for number, program in enumerate(chosen, 1):
        comparison.add(program)
        print(f"\r{number} of {len(chosen)} programs", end="", file=sys.stderr)
    print(file=sys.stderr)
    for place, (kind, number) in enumerate(comparison.found.most_common()):
        print(f"\n{number} programs: {kind}")
        if place < explained:
            program, (one, other) = comparison.explained(kind)
            print(json.dumps(program["setup"]), *map(json.dumps, program["steps"]), sep="\n  ")
            print(f"- {json.dumps(one)}\n+ {json.dumps(other)}")
    comparison.close()
    found = len(comparison.found)
    print(f"{len(chosen)} programs, {comparison.lines} lines, {found} kinds of differences")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
