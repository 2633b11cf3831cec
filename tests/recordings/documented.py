"""Compares what tests and pages see of two checkouts, each of which runs its own.

As a script it runs pytest, and takes down for each test what its calls of the public interfaces
return, with events, log records and metrics. Tests of equal source are compared. Ids and paths are
numbered, the present time is left out, and what differs from run to run of one checkout is not
compared: random texts, threads.
"""

import contextvars
import functools
import hashlib
import inspect
import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path

import pytest

FOLDERS = ["retrieval", "recall", "policy", "hyde", "context", "contradictions", "observability"]
FOLDERS += ["promises", "compat", "verbs", "docs/test_code.py"]


def compare_documented(before, after, tests):
    """Print the tests that see something else; return whether there are any."""
    one, again, other = _recorded(before, tests), _recorded(before, tests), _recorded(after, tests)
    both = one.keys() & other.keys()
    known = [name for name in both if one[name]["source"] == other[name]["source"]]
    steady = sorted(name for name in known if one[name] == again.get(name))
    differing = [name for name in steady if one[name] != other[name]]
    for name in differing:
        print(f"\n{name}: {one[name]['outcome']}, {other[name]['outcome']}")
        for sides in zip_longest(one[name]["lines"], other[name]["lines"]):
            if sides[0] != sides[1]:
                print(f"- {sides[0]}\n+ {sides[1]}")
                break
    print(
        f"{len(steady)} tests, {sum(len(one[name]['lines']) for name in steady)} lines, "
        f"{len(differing)} differences; left out: {len(known) - len(steady)} tests that differ "
        f"from run to run, {len(both) - len(known)} of another source, "
        f"{len(one.keys() ^ other.keys())} of one checkout alone"
    )
    return bool(differing)


def _recorded(checkout, tests):
    """Return what each test of a checkout saw."""
    from tests.recordings.comparing import environment  # noqa: PLC0415 - not where it is a script

    chosen = tests or [f"tests/{name}" for name in FOLDERS]
    with tempfile.NamedTemporaryFile("r") as out:
        command = [sys.executable, __file__, out.name, *chosen]
        subprocess.run(command, cwd=checkout, env=environment(checkout), check=False, stdout=2)
        return {run["test"]: run for run in map(json.loads, out)}


class Recorder:
    """A plugin of pytest that writes a line for each test."""

    def __init__(self, out):
        from tape import Tape  # noqa: PLC0415 - beside the script

        self._new_tape, self._out = Tape, out
        self.tape = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.tape, outcome = self._new_tape(), "failed"
        try:
            with self.tape.running():
                result = yield
            outcome = "passed"
            return result
        finally:
            lines = _normal(self.tape.lines)
            source = hashlib.sha256(_source(item).encode()).hexdigest()[:16]
            run = {"test": item.nodeid, "source": source, "outcome": outcome, "lines": lines}
            self._out.write(json.dumps(run) + "\n")
            self.tape = None

    def spy(self, owner):
        """Take down what the public functions of a class or a module return."""
        for name, function in list(vars(owner).items()):
            if not name.startswith("_") and inspect.isfunction(function):
                setattr(owner, name, self._spied(name, function))

    def _spied(self, name, function):
        @functools.wraps(function)
        def call(*args, **named):
            if self.tape is None or _IS_INSIDE.get():
                return function(*args, **named)
            token = _IS_INSIDE.set(True)
            try:
                answer = function(*args, **named)
            finally:
                _IS_INSIDE.reset(token)
            return (
                self._awaited(name, answer)
                if inspect.iscoroutine(answer)
                else self._told(name, answer)
            )

        return call

    async def _awaited(self, name, answer):
        token = _IS_INSIDE.set(True)
        try:
            made = await answer
        finally:
            _IS_INSIDE.reset(token)
        return self._told(name, made)

    def _told(self, name, answer):
        if self.tape is not None:
            self.tape.write("answer", call=name, answer=answer)
        return answer


_IS_INSIDE = contextvars.ContextVar("is_inside", default=False)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PATH = re.compile(r"/(tmp|work|root)/[^\s\"'\\]*")
_TODAY = datetime.now(UTC)
_NOW = "|".join(f"{_TODAY + timedelta(days):%Y-%m-%d}" for days in (-1, 0, 1))
_TIME = re.compile(rf"({_NOW})([T ][\d:.]+(\+00:00|Z)?)?")


def _normal(lines):
    known = {}
    made = [json.dumps(line) for line in lines]
    made = [
        _UUID.sub(lambda found: known.setdefault(found[0], f"id {len(known)}"), each)
        for each in made
    ]
    return [_TIME.sub("now", _PATH.sub("path", each)) for each in made]


def _source(item):
    try:
        return inspect.getsource(item.obj)
    except (OSError, TypeError):
        return ""


def main(out, tests):
    import mnemic  # noqa: PLC0415 - of the checkout
    from mnemic import compat, hyde, policy  # noqa: PLC0415 - as above

    with Path(out).open("w") as file:
        recorder = Recorder(file)
        classes = {
            base
            for shelf in (mnemic, compat, hyde, policy)
            for name in dir(shelf)
            if inspect.isclass(kind := getattr(shelf, name)) and not issubclass(kind, BaseException)
            for base in kind.__mro__
            if base.__module__.startswith("mnemic.") and not hasattr(base, "__struct_fields__")
        }
        for each in (*classes, hyde, policy):
            for name in dir(each):
                getattr(each, name, None)
            recorder.spy(each)
        pytest.main(["-q", "-p", "no:cacheprovider", "--tb=no", *tests], plugins=[recorder])


if __name__ == "__main__":
    sys.path.insert(1, "")  # the tests of the checkout
    main(sys.argv[1], sys.argv[2:])
