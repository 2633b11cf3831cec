"""Compares what two checkouts show of the same programs."""

import json
import os
import subprocess
import sys
from collections import Counter

from tests.support.paths import ROOT


class Checkout:
    """A process that plays programs, one a line, against the package of a checkout."""

    def __init__(self, path, seed):
        self._path = path
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.recordings.playing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**environment(path), "PYTHONHASHSEED": seed},
        )
        self.close = self._process.communicate

    def ask(self, program):
        """Begin a program."""
        self._process.stdin.write(json.dumps(program) + "\n")
        self._process.stdin.flush()

    def told(self):
        """Return the lines of the program that was begun."""
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the programs ended in {self._path}; the error above has the reason")
        return json.loads(line)


def environment(path):
    """Return the environment in which the package is that of a checkout, with its own core."""
    return {**os.environ, "PYTHONPATH": f"{path / 'python'}:{path / 'files'}"}


class Comparison:
    """Plays programs against two checkouts, which hash texts in different ways.

    Attributes:
        lines: Number of lines compared so far.
        found: For each kind of difference the number of its programs.
        examples: The first program of each kind, and both sides.
    """

    def __init__(self, before, after):
        self._both = Checkout(before, "1"), Checkout(after, "7")
        self.lines, self.found, self.examples = 0, Counter(), {}

    def add(self, program):
        """Play a program, and count its differences."""
        before, after = self._played(program)
        self.lines += max(len(before), len(after))
        seen = {kind: sides for kind, *sides in differences(before, after)}
        self.found.update(seen.keys())
        for kind, sides in seen.items():
            self.examples.setdefault(kind, (program, sides))

    def close(self):
        for each in self._both:
            each.close()

    def explained(self, kind):
        """Return the program of a difference with the steps that it needs, and both sides."""
        program, sides = self.examples[kind]
        steps, size = program["steps"], len(program["steps"])
        while size:
            for at in reversed(range(0, len(steps), size)):
                fewer = steps[:at] + steps[at + size :]
                found = differences(*self._played({**program, "steps": fewer}))
                seen = next((both for name, *both in found if name == kind), None)
                if seen is not None:
                    steps, sides = fewer, seen
            size //= 2
        return {**program, "steps": steps}, sides

    def _played(self, program):
        for each in self._both:
            each.ask(program)
        return [each.told() for each in self._both]


def differences(before, after):
    """Yield each difference: what it is of, and both sides.

    Lines are compared step by step, and in a step those of a kind with each other in their order:
    a line too many makes no other line differ. The order of different kinds is compared last.
    """
    steps, others = _by_step(before), _by_step(after)
    for one, other in zip(steps, others, strict=True):
        call, is_equal = one[0].get("call"), True
        for kind in dict.fromkeys(line["kind"] for line in one + other):
            some = [[line for line in lines if line["kind"] == kind] for lines in (one, other)]
            for path, *sides in _unequal(*some, (kind,)):
                is_equal = False
                yield f"{call}: {' '.join(path)}", *sides
        if is_equal and one != other:
            yield f"{call}: order", [line["kind"] for line in one], [line["kind"] for line in other]


def _by_step(lines):
    steps = [[{"kind": "step", "call": "opening"}]]
    for line in lines:
        if line["kind"] == "step":
            steps.append([])
        steps[-1].append(line)
    return steps


def _unequal(one, other, path):
    """Yield the place and both values of each difference of two values."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            yield from _unequal(one.get(name), other.get(name), (*path, name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for each, its_other in zip(one, other, strict=True):
            yield from _unequal(each, its_other, path)
    else:
        yield path, one, other
