"""Run the tests of the adapters, and the frameworks' own over them: `make adapters`.

Each adapter is installed beside its framework in two environments below target/: the lowest
version that its pyproject.toml allows, and the newest that it was tried with. Its `suite.toml`
names both, and the frameworks' suites: the source distribution is fetched from the package
registry, checked by its hash and unpacked, and its tests run unchanged. A table of all follows:
what passed and failed, what was left out and why, and the lines of code of each adapter.

    python adapters/run.py [--environment newest] [--times] [--canary] [NAME …]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "adapters"
SHARED = ROOT / "adapters" / "shared"
HEAD = "| adapter | framework | suite | passed | failed | skipped | left out | seconds | lines |"

sys.path.insert(0, str(ROOT / "tools"))

import size  # noqa: E402 - lies in tools/


@dataclass
class Outcome:
    """One row of the table."""

    adapter: str
    framework: str
    suite: str
    counts: Mapping[str, int]
    seconds: float
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether something passed and nothing failed."""
        return self.counts["passed"] > 0 and self.counts["failed"] == 0


class Environment:
    """A virtual environment with an adapter, its framework and what their tests need."""

    def __init__(
        self, adapter: Path, name: str, settings: Mapping[str, Any], *, is_canary: bool
    ) -> None:
        self.name = name
        self.settings = settings
        self.adapter = adapter
        self.is_canary = is_canary
        self.folder = WORK / adapter.name / name
        self.python = self.folder / "venv" / "bin" / "python"

    @property
    def is_distribution(self) -> bool:
        """Whether there is something to install, and not recipes alone."""
        return (self.adapter / "pyproject.toml").exists()

    @property
    def requirements(self) -> list[str]:
        """The framework with its version, and what belongs to it."""
        wanted = list(self.settings["environments"][self.name]["requirements"])
        return [each.partition("==")[0] for each in wanted] if self.is_canary else wanted

    @cached_property
    def framework(self) -> str:
        """The framework, and the version of it that is installed; of recipes all clients."""
        wanted = self.requirements[: 1 if self.is_distribution else None]
        names = [each.partition("==")[0] for each in wanted]
        code = "import sys; from importlib.metadata import version as v; "
        code += "print(*(f'{name} {v(name)}' for name in sys.argv[1:]), sep=', ')"
        command = [str(self.python), "-c", code, *names]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def make(self, wheels: Iterable[Path]) -> None:
        """Install everything in one call, so that the bounds are resolved together."""
        if not self.python.exists():
            run(sys.executable, "-m", "venv", self.folder / "venv")
        ours = [*wheels, *([self.adapter] if self.is_distribution else [])]
        self.pip("install", "--upgrade", "pip>=25.1")
        upgrade = ["--upgrade"] if self.is_canary else []
        self.pip(
            "install", *upgrade, *self.requirements, *self.settings["tests"]["requirements"], *ours
        )
        # Those that are there already have the same version, and may be older.
        self.pip("install", "--force-reinstall", "--no-deps", *ours)

    def pip(self, *arguments: str | Path) -> None:
        """Call pip of this environment."""
        run(self.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)

    def suites(self) -> Iterator[Outcome]:
        """Run the adapter's own tests, then those of the framework that belong here."""
        paths = ["tests", str(SHARED)] if self.is_distribution else ["tests"]
        yield self.test("own tests", self.adapter, paths, [])
        for suite in self.settings.get("suites", ()):
            if self.name in suite["environments"]:
                options = list(suite.get("options", ()))
                if "plugin" in suite:
                    options += ["-p", suite["plugin"]]
                skips = {each["test"]: each["reason"] for each in suite.get("skips", ())}
                folder = self.unpacked(suite) if "sdist" in suite else self.adapter / "suites"
                yield self.test(suite["name"], folder, suite["run"], options, skips)

    def unpacked(self, suite: Mapping[str, Any]) -> Path:
        """Fetch a source distribution and unpack the files of its tests."""
        distribution, digest = suite["sdist"], suite["sha256"]
        folder = self.folder / "sources" / distribution.replace("==", "-")
        wanted = self.folder / "wanted.txt"
        wanted.write_text(f"{distribution} --hash=sha256:{digest}\n", encoding="utf-8")
        options = ("--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes")
        if not folder.exists():
            self.pip("download", *options, "-r", wanted, "--dest", folder)
        target = folder / "tests"
        shutil.rmtree(target, ignore_errors=True)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            for member in archive.getmembers():
                top, _, name = member.name.partition("/")
                if any(name == file or name.startswith(f"{file}/") for file in suite["files"]):
                    archive.extract(member, target, filter="data")
        return Path(target, top)

    def test(
        self,
        name: str,
        folder: Path,
        paths: Iterable[str],
        options: Iterable[str],
        skips: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Run pytest in a folder, and count what it reports."""
        left_out = dict(skips or {})
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        begun = time.monotonic()
        subprocess.run(
            [
                *(str(self.python), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                "--disable-warnings",
                *("-c", os.devnull, "--rootdir", ".", "--tb=short", f"--junit-xml={report}"),
                *options,
                *(f"--deselect={test}" for test in left_out),
                *paths,
            ],
            cwd=folder,
            env=environment(self.adapter / "suites"),
            check=False,
        )
        counts = counted(report)
        seconds = time.monotonic() - begun
        return Outcome(self.adapter.name, self.framework, name, counts, seconds, left_out)

    def types(self) -> Outcome:
        """Check the adapter's types against the framework."""
        begun = time.monotonic()
        self.pip("install", pinned("mypy"))
        checked = subprocess.run(
            [self.python, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "src"],
            cwd=self.adapter,
            env=environment(self.adapter / "suites"),
            check=False,
        )
        good = checked.returncode == 0
        counts = {"passed": int(good), "failed": int(not good), "skipped": 0}
        seconds = time.monotonic() - begun
        return Outcome(self.adapter.name, self.framework, "mypy --strict", counts, seconds)

    def times(self) -> None:
        """Print the times beside the framework's own."""
        module = self.settings["times"]["module"]
        run(self.python, "-m", module, env=environment(self.adapter / "suites"), cwd=self.folder)


def environment(suites: Path) -> dict[str, str]:
    """Return the variables for a process: of the tree it can import suites alone."""
    slow = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE"}
    kept = {name: value for name, value in os.environ.items() if name not in slow}
    return kept | {"PYTHONPATH": os.pathsep.join([str(suites), str(SHARED)])}


def counted(report: Path) -> dict[str, int]:
    """Return what passed, failed and was skipped; a run without a report failed."""
    if not report.exists():
        return {"passed": 0, "failed": 1, "skipped": 0}
    suite = next(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314 - pytest's
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return {"passed": total - skipped - failed, "failed": failed, "skipped": skipped}


def pinned(name: str) -> str:
    """Return the version of a tool that the project's own checks use."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    return next(str(each) for each in groups["lint"] if str(each).startswith(f"{name}=="))


def built() -> list[Path]:
    """Build the wheels of mnemic and its model."""
    folder = WORK / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
    sources = ROOT, ROOT / "models" / "minilm"
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, *sources),
        env=os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")},
    )
    return sorted(folder.glob("*.whl"))


def lines(adapter: Path) -> int:
    """Count the lines of code of an adapter, as the project's budgets do."""
    sources = (path.relative_to(ROOT) for path in adapter.glob("src/**/*.py"))
    return sum(each["lines"] for each in size.measured(sources)["folders"].values())


def run(*command: str | Path, **options: Any) -> None:
    """Run a command that has to succeed."""
    subprocess.run([str(part) for part in command], check=True, **options)


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the table as Markdown, with the reasons for what was left out below it."""
    rows = [HEAD, "|---|---|---|---|---|---|---|---|---|"]
    reasons = []
    for each in outcomes:
        counts = " | ".join(str(each.counts[kind]) for kind in ("passed", "failed", "skipped"))
        size_of = lines(ROOT / "adapters" / each.adapter)
        rows.append(
            f"| {each.adapter} | {each.framework} | {each.suite} | {counts} "
            f"| {len(each.left_out)} | {each.seconds:.0f} | {size_of} |"
        )
        reasons += [f"- `{test}`: {reason}" for test, reason in each.left_out.items()]
    return "\n".join([*rows, "", *dict.fromkeys(reasons)])


def main() -> int:
    """Run what is asked for; fail where a test failed, or where none ran."""
    known = sorted(path.parent.name for path in ROOT.glob("adapters/*/suite.toml"))
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("names", nargs="*", choices=[[], *known], default=[], metavar="NAME")
    parser.add_argument("--environment", help="only this one: lowest or newest")
    parser.add_argument("--times", action="store_true", help="measure, too, in the newest")
    parser.add_argument("--canary", action="store_true", help="take the registry's newest instead")
    given = parser.parse_args()
    wheels = built()
    outcomes: list[Outcome] = []
    for name in given.names or known:
        adapter = ROOT / "adapters" / name
        settings = tomllib.loads((adapter / "suite.toml").read_text("utf-8"))
        for kind in settings["environments"]:
            if given.environment not in {None, kind} or (given.canary and kind == "lowest"):
                continue
            print(f"== {name}, {kind}", flush=True)
            place = Environment(adapter, kind, settings, is_canary=given.canary)
            place.make(wheels)
            outcomes += place.suites()
            if kind == "newest" and place.is_distribution:
                outcomes.append(place.types())
            if kind == "newest" and given.times and "times" in settings:
                place.times()
    print(table(outcomes))
    (WORK / "table.md").write_text(table(outcomes) + "\n", encoding="utf-8")
    return int(not all(outcome.is_good for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
