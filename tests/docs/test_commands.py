"""The commands of the pages: targets, modules, options, extras and files that they name exist."""

import argparse
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from mnemic.cli.main import VERBS, declare
from tests.support.pages import PAGES, REFERENCE, blocks_of, text_of
from tests.support.paths import ROOT

SHELL = [
    (page, line)
    for page in PAGES
    for block in blocks_of(page)
    if block.language == "sh"
    for line in block.text.replace("\\\n", " ").splitlines()
    if line.strip()
]
PROGRAMS = {"make", "python", "pip", "cd", "mv", "rm", "cp", "asv", "uvicorn", "mnemic"}
INLINE = re.compile(r"`([^`]+)`")
RUN = re.compile(r"\bpython -m ([\w.]+)([^;&|#]*)")
VERB = re.compile(rf"\bmnemic ({'|'.join(VERBS)})\b([^;&|#]*)")
OPTION = re.compile(r"(?<=\s)--[a-z][\w-]*")
MAKE = re.compile(r"(?:^|&& )make ([a-z][a-z0-9-]*)")
EXTRA = re.compile(r"(?:mnemic|\.)\[([\w,]+)\]")


def commands(page):
    """Yield the commands of a page: lines of its shell blocks, and those between backticks."""
    yield from (line for place, line in SHELL if place == page)
    shown = re.sub(r"^ *```.*?^ *```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    yield from (" ".join(found.split()) for found in INLINE.findall(shown))


def file_of(module):
    place = ROOT.joinpath(*module.split("."))
    if module.startswith("mnemic"):
        place = ROOT / "python" / place.relative_to(ROOT)
    return next((f for f in (place.with_suffix(".py"), place / "__main__.py") if f.is_file()), None)


def unknown_parts(command, targets, extras):
    for target in MAKE.findall(command):
        if target not in targets:
            yield f"make {target}"
    for module, rest in RUN.findall(command):
        yield from unknown_options(module, rest)
    for verb, rest in VERB.findall(command):
        yield from (f"mnemic {verb} {one}" for one in OPTION.findall(rest) if one not in of(verb))
    for names in EXTRA.findall(command):
        yield from sorted(set(names.split(",")) - extras)


def of(verb):
    """Return the options of a verb of the command."""
    parser = argparse.ArgumentParser()
    declare(verb, parser)
    return {option for action in parser._actions for option in action.option_strings}


def unknown_options(module, rest):
    if module in {"pip", "venv"}:
        return
    file = file_of(module)
    if file is None:
        yield f"python -m {module}"
        return
    source = file.read_text(encoding="utf-8")
    for option in OPTION.findall(rest):
        if f'"{option}"' not in source:
            yield f"python -m {module} {option}"


@pytest.fixture(scope="module")
def project():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return targets, set(pyproject["project"]["optional-dependencies"])


@pytest.mark.parametrize("page", [*PAGES, *REFERENCE])
def test_the_commands_of_a_page_name_targets_modules_options_and_extras_that_exist(page, project):
    assert not [part for command in commands(page) for part in unknown_parts(command, *project)]


@pytest.mark.parametrize(
    "command",
    [
        "make no-such-target",
        "python -m benches.none",
        "mnemic demo --none",
        "python -m benches.memory --none",
        'pip install "mnemic[none]"',
        'pip install ".[local,none]"',
    ],
)
def test_an_unknown_part_of_a_command_is_found(command, project):
    assert len(list(unknown_parts(command, *project))) == 1


def test_shell_blocks_hold_commands_that_are_checked_and_files_that_exist():
    for page, line in SHELL:
        words = shlex.split(line, comments=True)
        assert not words or Path(words[0]).name in PROGRAMS, f"{page}: {line}"
        if "pip" in words and "install" in words:
            paths = [word for word in words if word.startswith("./")]
            assert all((ROOT / path).exists() for path in paths), f"{page}: {line}"
