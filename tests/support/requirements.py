"""Lists the requirements that have a test: `python -m tests.support.requirements [ID …]`.

Without ids, a line for each requirement: how many tests carry its marker, and their files. With
ids, the tests of these requirements; the exit code is 1 where one has none.
"""

import contextlib
import io
import os
import sys
from collections import defaultdict

import pytest


class Collector:
    """A plugin that gathers the names of the tests of each requirement."""

    def __init__(self):
        self.tests = defaultdict(list)

    def pytest_collection_finish(self, session):
        for item in session.items:
            ids = {each for mark in item.iter_markers("requirement") for each in mark.args}
            for each in ids:
                self.tests[each].append(item.nodeid)


def collected():
    """Return the tests of each requirement, by its id."""
    os.environ["MNEMIC_TESTS"] = "all"
    collector, said = Collector(), io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(["--collect-only", "--quiet"], plugins=[collector])
    if code:
        raise SystemExit(said.getvalue())
    return collector.tests


def main(wanted):
    """Print the tests of the given requirements, or a line for each that has any."""
    tests = collected()
    for each in wanted:
        print(each, *tests.get(each, ["has no test"]), sep="\n  ")
    if not wanted:
        for each, names in sorted(tests.items()):
            files = dict.fromkeys(name.partition("::")[0] for name in names)
            print(f"{each} {len(names):4}  {' '.join(files)}")
    return any(each not in tests for each in wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
