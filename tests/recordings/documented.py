"""Compares what tests and pages see of two checkouts, each of which runs its own.

As a script it runs pytest, and takes down for each test what its calls of the public interfaces
return, with events, log records and metrics. Tests of equal source are compared. Ids and paths are
numbered and come from a seed, the present time is left out, and what differs from run to run of one
checkout is not compared: threads.
"""

import functools
import inspect
import json
import os
import random
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
TODAY = datetime.now(UTC)
NOW = "|".join(f"{TODAY + timedelta(days):%Y-%m-%d}" for days in (-1, 0, 1))
LEFT_OUT = re.compile(rf"/(tmp|work|root)/[^\s\"'\\]*|({NOW})([T ][\d:.]+(\+00:00|Z)?)?")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def compare_documented(before, after):
    """Print the tests that see something else; return whether there are any."""
    one, again, other = map(_recorded, (before, before, after))
    known = [name for name in one.keys() & other if one[name]["source"] == other[name]["source"]]
    steady = sorted(name for name in known if one[name] == again.get(name))
    differing = [name for name in steady if one[name] != other[name]]
    for name in differing:
        print(f"\n{name}: {one[name]['outcome']}, {other[name]['outcome']}")
        sides = zip_longest(one[name]["lines"], other[name]["lines"])
        print("- {}\n+ {}".format(*next((each for each in sides if each[0] != each[1]), "==")))
    print(
        f"{len(steady)} tests, {sum(len(one[name]['lines']) for name in steady)} lines, "
        f"{len(differing)} differences; left out: {len(known) - len(steady)} tests that differ "
        f"from run to run, {len(one.keys() | other) - len(known)} of one checkout alone"
    )
    return bool(differing)


def _recorded(checkout):
    """Return what each test of a checkout saw."""
    from tests.recordings.comparing import environment  # noqa: PLC0415 - not where it is a script

    with tempfile.NamedTemporaryFile("r") as out:
        command = [sys.executable, __file__, out.name]
        subprocess.run(command, cwd=checkout, env=environment(checkout), check=False, stdout=2)
        return {run["test"]: run for run in map(json.loads, out)}


class Recorder:
    """A plugin of pytest that writes a line for each test."""

    def __init__(self, tape, out, source):
        self.tape, self._out, self._random = tape, out, source

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        self._random.seed(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.tape.lines, outcome = [], "failed"
        try:
            with self.tape.running():
                result = yield
            outcome = "passed"
            return result
        finally:
            lines, source = _normal(self.tape.lines), inspect.getsource(item.obj)
            run = {"test": item.nodeid, "source": source, "outcome": outcome, "lines": lines}
            self._out.write(json.dumps(run) + "\n")

    def spied(self, function):
        """Return the function as one that takes down what it returns to callers outside."""

        def told(answer):
            self.tape.write("answer", call=function.__name__, answer=answer)
            return answer

        async def awaited(answer):
            return told(await answer)

        @functools.wraps(function)
        def call(*args, **named):
            answer = function(*args, **named)
            if sys._getframe(1).f_globals.get("__name__", "").startswith("mnemic"):
                return answer
            return awaited(answer) if inspect.iscoroutine(answer) else told(answer)

        return call


def _normal(lines):
    known = {}

    def numbered(found):
        return known.setdefault(found[0], f"id {len(known)}")

    return [LEFT_OUT.sub("…", UUID.sub(numbered, json.dumps(line))) for line in lines]


def main(out):
    from tape import Tape  # noqa: PLC0415 - beside the script

    source = random.Random()  # noqa: S311 - no secrets
    os.urandom = source.randbytes  # ids decide between equals
    import mnemic  # noqa: PLC0415 - of the checkout
    from mnemic import compat, hyde, policy  # noqa: PLC0415 - as above

    with Path(out).open("w") as file:
        recorder = Recorder(Tape(), file, source)
        names = [(shelf, name) for shelf in (mnemic, compat, hyde, policy) for name in dir(shelf)]
        classes = {
            base
            for kind in (getattr(shelf, name) for shelf, name in names)
            if inspect.isclass(kind) and not issubclass(kind, BaseException)
            for base in kind.__mro__
            if base.__module__.startswith("mnemic.") and not hasattr(base, "__struct_fields__")
        }
        for owner in (*classes, hyde, policy):
            for name in dir(owner):
                getattr(owner, name, None)  # what is made when it is first asked for
            for name, function in list(vars(owner).items()):
                if not name.startswith("_") and inspect.isfunction(function):
                    setattr(owner, name, recorder.spied(function))
        tests = [f"tests/{name}" for name in FOLDERS]
        pytest.main(["-q", "-p", "no:cacheprovider", "--tb=no", *tests], plugins=[recorder])


if __name__ == "__main__":
    sys.path.insert(1, "")  # the tests of the checkout
    main(sys.argv[1])
