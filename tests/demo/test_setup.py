"""The scripts of the Makefile's set-up."""

import io
import re
import sys

import pytest

from tests.support.paths import ROOT

pytest.importorskip("tools.step", reason="the tools come with the repository")

from tools import step
from tools.libraries import libraries


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(program, stream=None):
    stream = stream or io.StringIO()
    status = step.run("[1/2] Libraries", "30 s", [sys.executable, "-c", program], stream)
    return status, stream.getvalue()


def test_a_step_shows_its_expected_time_at_once_and_its_own_at_the_end():
    status, shown = run("print('a line that succeeded')")
    assert status == 0
    assert re.fullmatch(r"\[1/2\] Libraries \(30 s\)\n  done after \d+ s\n", shown)


@pytest.fixture
def printing(tmp_path, monkeypatch):
    """Return a program that prints a text and ends once that text was reported."""
    gate = tmp_path / "reported"
    report = step.Report.running

    def running(self, seconds, line):
        report(self, seconds, line)
        if line:
            gate.touch()

    monkeypatch.setattr(step, "SECONDS", {True: 0.05, False: 0.05})
    monkeypatch.setattr(step.Report, "running", running)
    wait = f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    return lambda text: f"import os, time\nprint({text!r})\n{wait}"


def test_a_long_step_shows_the_last_line_of_its_command(printing):
    status, shown = run(printing("Compiling one\rBuilding [==>  ] 1/2: \x1b[1mtwo"))
    assert status == 0
    assert re.search(r"^ +\d+ s  Building 1/2: two$", shown, re.MULTILINE)


def test_a_terminal_keeps_one_line(printing):
    status, shown = run(printing("Compiling " + 500 * "x"), Terminal())
    assert status == 0
    assert shown.count("\n") == 1
    assert shown.endswith("s\n")
    *running, last = shown.rstrip("\n").split("\r\x1b[K")[1:]
    assert last.startswith("[1/2] Libraries: done after")
    assert any("Compiling x" in line for line in running)
    assert max(map(len, running)) < 200


def test_all_output_of_a_failed_step_is_shown():
    program = "import sys; print('first'); print('second', file=sys.stderr); sys.exit(3)"
    status, shown = run(program)
    assert status == 3
    assert "  failed with status 3 after" in shown
    assert sorted(shown.splitlines()[-2:]) == ["first", "second"]


def test_the_libraries_of_the_set_up_are_those_of_the_package():
    found = libraries()
    assert any(re.match(r"numpy\b", one) for one in found)
    assert any(re.match(r"msgspec\b", one) for one in found)
    assert not [one for one in found if one.startswith("mnemic")]


def test_every_step_of_the_makefile_names_a_time():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    steps = re.findall(r"\$\(STEP\) (?:'[^']*'|\"[^\"]*\") (\S+ ?\S*)", makefile)
    assert len(steps) >= 5
    assert all(re.match(r"'\d+ (s|minutes?)\b", time) for time in steps)
