"""Build the distributions into dist/, check them, and try them where nothing else is installed.

`python -m tools.wheels [build] [check] [install] [command] [sdist]` takes the steps that are named,
or all. `build` and `sdist`, which installs from the source distribution, need cargo. `install` and
`command` need no more than the wheels: the one takes an interpreter of each version that it finds,
the other runs the tests of the command with this one.
"""

import argparse
import base64
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.support.pages import blocks_of, is_output, with_outputs
from tools import step

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PRIVATE = {Path.home(): "~", ROOT: "mnemic"}
"""Folders of the machine that builds, and what rustc writes for them; the last that fits counts."""
OLDEST_GLIBC = 28
"""Debian 10 and RHEL 8 have 2.28."""
LINUX = f"manylinux_2_{OLDEST_GLIBC}"
OLDEST_PYTHON = (3, 11)
NOT_IN_SDIST = {"models", "files", "benches", "examples", "tools"}
PAGES = (
    "README.md",
    "docs/start/tutorial.md",
    "docs/run/backup.md",
    "docs/build/memory-files.md",
    "docs/build/paging.md",
)
"""Those whose code needs no other library, or one that has a stand-in."""
TEST_TOOLS = "hypothesis", "pytest==", "pytest-timeout", "pytest-xdist", "PyYAML"
COPIED = (
    *("pyproject.toml", "tests/*.py", "tests/support", "tests/fixtures/importers"),
    *("tests/cli", "tests/mcp", "tests/importers", "benches/*.py", "benches/support", "models"),
)
"""What the tests of the command read, without the package."""
_SEES_THE_WHEEL = """
import mnemic, mnemic._core
places = mnemic.__file__, mnemic._core.__file__
assert all(each.startswith(sys.prefix) and "site-packages" in each for each in places), places
"""
_PYTEST = """
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
_STARTS = """
from benches import start
start.MEMORIES, start.RECALLS, start.ROUNDS = 500, 20, 1
assert start.PROGRAM == [f"{sys.prefix}/bin/mnemic"], start.PROGRAM
start.main()
"""
_VERSION = """
import sys, sysconfig
print(*sys.version_info[:2], sysconfig.get_config_var("Py_GIL_DISABLED") or 0)
"""


class Environment:
    """A new environment, whose programs see neither the checkout nor other programs."""

    def __init__(self, interpreter: str, folder: Path) -> None:
        subprocess.run([interpreter, "-m", "venv", folder / "venv"], check=True)
        programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self._python = str(programs / "python")
        outer = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        self._environment = {**outer, "PATH": str(programs)}

    def install(
        self,
        mnemic: Path,
        expected: str,
        given: Mapping[str, str] | None = None,
        extras: str = "local",
        tools: Iterable[str] = (),
    ) -> None:
        """Install a distribution of mnemic with its model, mnemic-files, and tools for tests."""
        wanted = (
            f"{mnemic}[{extras}]",
            *map(str, (the("mnemic_minilm-*.whl"), the("mnemic_files-*.whl"))),
            *tools,
        )
        pip = self._python, "-I", "-m", "pip", "install", "--disable-pip-version-check"
        run("  installed", expected, *pip, *wanted, environment=given or self._environment)

    def python(self, *arguments: str, given: str = "") -> str:
        """Run a program of Python in an empty directory; return what it prints."""
        with tempfile.TemporaryDirectory() as empty:
            ended = subprocess.run(
                [self._python, "-I", *arguments],
                input=given,
                capture_output=True,
                encoding="utf-8",
                check=False,
                cwd=empty,
                env=self._environment,
            )
        require(ended.returncode == 0, f"failed: {arguments}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def run(self, label: str, expected: str, folder: Path, *arguments: str) -> None:
        """Run a program of Python in a folder, under a line of progress."""
        started = f"import os, sys; os.chdir({str(folder)!r}); sys.path.insert(0, os.getcwd()); "
        command = self._python, "-I", "-c", started + arguments[0], *arguments[1:]
        path = os.pathsep.join((self._environment["PATH"], os.defpath))  # tests start a shell
        run(label, expected, *command, environment={**self._environment, "PATH": path})

    def try_it(self) -> None:
        """Run the demo, the smoke test and the code of the pages."""
        for line in (
            self.python("-m", "mnemic.cli", "demo").splitlines()[-1],
            *self.python(str(ROOT / "tools" / "smoke.py")).splitlines(),
            *(f"{page} runs" for page in self._pages()),
        ):
            print(f"  {line}")

    def _pages(self) -> Iterator[str]:
        program = str(ROOT / "tests" / "support" / "page_code.py")
        for page in PAGES:
            blocks = [each for each in with_outputs(blocks_of(page)) if each[0].is_run]
            code = [(block.line, block.text) for block, _ in blocks]
            printed = json.loads(self.python(program, given=json.dumps([page, code])))
            for (block, shown), text in zip(blocks, printed, strict=True):
                if not is_output(shown or "", text):
                    sys.exit(f"{page}:{block.line} shows\n{shown}\nand prints\n{text}")
            yield page


def build() -> None:
    """Build wheels and the source distribution from the checkout."""
    for earlier in DIST.glob("mnemic*"):
        earlier.unlink()
    maturin, out = (sys.executable, "-m", "maturin"), ("--out", str(DIST))
    # maturin looks for ziglang in the interpreter that is first on the path.
    first = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    renamed = "\x1f".join(f"--remap-path-prefix={path}={name}" for path, name in PRIVATE.items())
    environment = {**os.environ, "PATH": first, "CARGO_ENCODED_RUSTFLAGS": renamed}
    options = "build", "--release", *portable(), *out
    run("Wheel of mnemic, compiled", "5 minutes", *maturin, *options, environment=environment)
    rename_in_bill(the("mnemic-*.whl"))
    run("Source distribution", "5 s", *maturin, "sdist", *out)
    folders = str(ROOT / "models" / "minilm"), str(ROOT / "files")
    pip = sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(DIST)
    run("Wheels of mnemic-minilm and mnemic-files", "20 s", *pip, *folders)


def portable() -> tuple[str, ...]:
    """Return maturin's options for a wheel that runs on older systems than this one."""
    if sys.platform != "linux":
        return ()
    target = f"{platform.machine()}-unknown-linux-gnu"
    return "--zig", "--compatibility", LINUX, "--target", target


def rename_in_bill(wheel: Path) -> None:
    """Name the checkout's crates from its root in the bill of materials of a wheel.

    maturin writes their absolute paths, and has no option for it.
    """
    with zipfile.ZipFile(wheel) as built:
        files = {each: built.read(each) for each in built.infolist()}
    [record] = [each for each in files if each.filename.endswith(".dist-info/RECORD")]
    for bill in [each for each in files if "/sboms/" in each.filename]:
        before = files[bill]
        files[bill] = before.replace(ROOT.as_uri().encode(), b"file://")
        old, new = (recorded(bill.filename, content) for content in (before, files[bill]))
        files[record] = files[record].replace(old.encode(), new.encode())
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as renamed:
        for each, content in files.items():
            renamed.writestr(each, content)


def recorded(name: str, content: bytes) -> str:
    """Return the line of a file in a wheel's RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{name},sha256={digest},{len(content)}"


def check() -> None:
    """Check what the wheel links to and the source distribution holds; print the sizes."""
    wheel, source = the("mnemic-*.whl"), the("mnemic-*.tar.gz")
    run("Stable ABI", "5 s", sys.executable, "-m", "abi3audit", "--strict", str(wheel))
    if sys.platform == "linux":
        check_baseline(wheel)
    check_private(wheel)
    with tarfile.open(source) as archive:
        folders = {part for name in archive.getnames() for part in Path(name).parts[1:2]}
    require(not folders & NOT_IN_SDIST, f"{source.name} has {sorted(folders & NOT_IN_SDIST)}")
    for each in sorted(DIST.glob("mnemic*")):
        print(
            f"{each.name}: {each.stat().st_size / 1e6:.2f} MB, {unpacked(each) / 1e6:.2f} unpacked"
        )


def check_baseline(wheel: Path) -> None:
    """Check that a wheel runs from the oldest glibc on, on any processor."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", wheel]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    glibc = re.match(r"manylinux_2_(\d+)_", found["overall_tag"])
    is_old = glibc is not None and int(glibc[1]) <= OLDEST_GLIBC
    require(is_old, f"{wheel.name} needs {found['overall_tag']}, not {LINUX}")
    require(not found["unsupported_isa"], f"{wheel.name} needs newer processors")


def check_private(wheel: Path) -> None:
    """Check that no path of the machine that builds stands in a wheel."""
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            for folder in PRIVATE:
                is_there = f"{folder}{os.sep}".encode() in files.read(name)
                require(not is_there, f"{wheel.name} has the path {folder} in {name}")


def unpacked(distribution: Path) -> int:
    """Return the bytes of a distribution's files."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as wheel:
            return sum(each.file_size for each in wheel.infolist())
    with tarfile.open(distribution) as archive:
        return sum(each.size for each in archive)


def install() -> None:
    """Install the wheels for each Python that is here, and try them."""
    for version, interpreter in sorted(interpreters().items()):
        print("Python {}.{}".format(*version))
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(interpreter, Path(folder))
            environment.install(the("mnemic-*.whl"), "20 s")
            environment.try_it()


def command() -> None:
    """Run the tests of the command and what `benches.start` times, in a folder without mnemic."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = [each for each in project["dependency-groups"]["test"] if each.startswith(TEST_TOOLS)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "copied")
        folder.mkdir()
        environment = Environment(sys.executable, Path(name))
        environment.install(the("mnemic-*.whl"), "40 s", extras="cli,mcp,local", tools=pinned)
        for each in COPIED:
            for source in ROOT.glob(each):
                target = folder / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                copy = shutil.copytree if source.is_dir() else shutil.copy
                copy(source, target)
        environment.run("  only the wheel is seen", "1 s", folder, _SEES_THE_WHEEL)
        tested = [str(folder / "tests" / each) for each in ("cli", "mcp", "importers")]
        options = "-q", "-p", "no:cacheprovider", "--numprocesses", "auto", "--maxprocesses", "4"
        environment.run("  tests of the command", "60 s", folder, _PYTEST, *options, *tested)
        environment.run("  starts of the command", "15 s", folder, _STARTS)


def sdist() -> None:
    """Install the source distribution, compiling it, and try it."""
    print("The source distribution")
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(sys.executable, Path(folder))
        compiled = {"CARGO_TARGET_DIR": str(ROOT / "target"), **os.environ}
        environment.install(the("mnemic-*.tar.gz"), "3 minutes", compiled)
        environment.try_it()


def interpreters() -> dict[tuple[int, ...], str]:
    """Return an interpreter of each version, from the path, from pyenv, or this one."""
    places = map(Path, os.environ["PATH"].split(os.pathsep))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = (file for place in (*places, *pyenv.glob("*/bin")) for file in place.glob("python3.*"))
    found: dict[tuple[int, ...], str] = {}
    for file in (*named, Path(sys.executable)):
        if re.fullmatch(r"python[\d.]*(\.exe)?", file.name):
            version = version_of(file)
            if version >= OLDEST_PYTHON:
                found.setdefault(version, str(file))
    return found


def version_of(interpreter: Path) -> tuple[int, ...]:
    """Return the version, or nothing where it does not start or has no stable ABI."""
    answer = subprocess.run(
        [interpreter, "-c", _VERSION], capture_output=True, encoding="utf-8", check=False
    )
    *version, is_free_threaded = map(int, answer.stdout.split() or [1])
    return () if is_free_threaded else tuple(version)


def the(pattern: str) -> Path:
    """Return the one distribution of a name."""
    found = list(DIST.glob(pattern))
    require(len(found) == 1, f"dist/ has {len(found)} files {pattern}, not one; build them anew")
    return found[0]


def run(
    label: str, expected: str, *command: str, environment: Mapping[str, str] = os.environ
) -> None:
    """Run a command under a line of progress."""
    require(not step.run(label, expected, command, environment=environment), f"failed: {label}")


def require(holds: object, message: str) -> None:
    """End with a message where something does not hold."""
    if not holds:
        sys.exit(message)


def main() -> None:
    """Take the steps that the command names."""
    steps = {each.__name__: each for each in (build, check, install, command, sdist)}
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(steps)}")
    named = parser.parse_args().steps
    if unknown := set(named) - steps.keys():
        parser.error(f"no step is named {', '.join(sorted(unknown))}; there are {', '.join(steps)}")
    for name in named or steps:
        steps[name]()


if __name__ == "__main__":
    main()
