"""The program that builds the distributions and tries them."""

import os
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("tools.step", reason="the tools come with the repository")

from tools import wheels

pytestmark = pytest.mark.skipif(os.name == "nt", reason="its interpreters are shell scripts")


@pytest.fixture
def named(tmp_path, monkeypatch):
    """Return a function that puts an interpreter on the path, which prints what it is."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))

    def name(program, script, folder="."):
        place = tmp_path / folder / program
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"#!/bin/sh\n{script}\n")
        place.chmod(0o755)
        return str(place)

    return name


def test_an_interpreter_of_each_version_is_found_where_the_wheel_runs(named):
    first = named("python3.98", "echo 3 98 0")
    named("python3.10", "echo 3 10 0")
    named("python3.99", "exit 127")
    named("python3.97t", "echo 3 97 1")
    named("python3.96", "echo 3 96 1")
    named("python3.98-config", "echo 3 95 0")
    named("python3.98", "echo 3 98 0", "pyenv/versions/3.98.1/bin")
    of_pyenv = named("python3.94", "echo 3 94 0", "pyenv/versions/3.94.1/bin")
    found = wheels.interpreters()
    assert found.pop(sys.version_info[:2]) == sys.executable
    assert found == {(3, 98): first, (3, 94): of_pyenv}


@pytest.fixture
def dist(tmp_path, monkeypatch):
    monkeypatch.setattr(wheels, "DIST", tmp_path)
    return tmp_path


def test_a_distribution_is_asked_for_that_is_missing_or_there_twice(dist):
    with pytest.raises(SystemExit, match="has 0 files mnemic-"):
        wheels.the("mnemic-*.whl")
    wheel = dist / "mnemic-1-a.whl"
    wheel.touch()
    assert wheels.the("mnemic-*.whl") == wheel
    (dist / "mnemic-2-a.whl").touch()
    with pytest.raises(SystemExit, match="has 2 files mnemic-"):
        wheels.the("mnemic-*.whl")


STEPS = ["build", "check", "install", "command", "sdist"]


@pytest.mark.parametrize(("named", "taken"), [([], STEPS), (["install"], ["install"])])
def test_the_steps_that_are_named_are_taken_or_all(named, taken, monkeypatch):
    done = []

    def replaced(name):
        def step():
            done.append(name)

        step.__name__ = name
        return step

    for name in STEPS:
        monkeypatch.setattr(wheels, name, replaced(name))
    monkeypatch.setattr(sys, "argv", ["wheels", *named])
    wheels.main()
    assert done == taken


def test_an_unknown_step_is_named_with_those_there_are(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["wheels", "publish"])
    with pytest.raises(SystemExit):
        wheels.main()
    assert "no step is named publish; there are build, check" in capsys.readouterr().err


@pytest.fixture
def built(tmp_path):
    """Return a function that writes a wheel with a file, and with its RECORD."""

    def write(name, content):
        wheel = tmp_path / "mnemic-1-a.whl"
        with zipfile.ZipFile(wheel, "w") as files:
            files.writestr(name, content)
            files.writestr("mnemic-1.dist-info/RECORD", f"{wheels.recorded(name, content)}\n")
        return wheel

    return write


@pytest.mark.parametrize("folder", [Path.home(), wheels.ROOT])
def test_a_path_of_the_machine_that_builds_is_found_in_a_wheel(folder, built):
    wheels.check_private(built("mnemic/_core.abi3.so", b"\0~/.cargo/x.rs\0rust/core/src/lib.rs"))
    wheel = built("mnemic/_core.abi3.so", f"\0{folder}/x.rs\0".encode())
    with pytest.raises(SystemExit, match=f"has the path {folder} in mnemic/_core"):
        wheels.check_private(wheel)


def test_a_bill_of_materials_names_crates_from_the_checkouts_root(built):
    name = "mnemic-1.dist-info/sboms/mnemic-py.cyclonedx.json"
    wheel = built(name, f'"path+{wheels.ROOT.as_uri()}/rust/py#mnemic-py@1"'.encode())
    wheels.rename_in_bill(wheel)
    with zipfile.ZipFile(wheel) as files:
        bill = files.read(name)
        record = files.read("mnemic-1.dist-info/RECORD").decode()
    assert bill == b'"path+file:///rust/py#mnemic-py@1"'
    assert record == f"{wheels.recorded(name, bill)}\n"
    wheels.check_private(wheel)
