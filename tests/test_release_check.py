"""What stands in the way of a release: each thing that is not ready is named."""

import re
import shutil
import subprocess

import pytest

from tests.support.paths import ROOT

release = pytest.importorskip("tools.release", reason="tools/ comes with the repository")

FILES = (*release.PROJECTS, "Cargo.toml", "CITATION.cff", "CHANGELOG.md", "README.md")
FILES += (release.SERVER, release.BUNDLE, release.DIRECTORY, *release.PLUGINS)
VERSION = release.toml(ROOT / "Cargo.toml")["workspace"]["package"]["version"]
TAG = f"v{VERSION}"


@pytest.fixture
def ready(tmp_path):
    """Return a copy of this repository's files, as they are to be at a release."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
        change(tmp_path / name, re.escape(release.PLACEHOLDER), "code.example")
        change(tmp_path / name, re.escape(release.OWNER), "example.code/")
    change(tmp_path / release.DIRECTORY, r"\[\]", '["somebody"]')
    change(tmp_path / "CHANGELOG.md", r"\A", f"## [{VERSION}] - 2026-12-01\n")
    for command in ("init", "add .", "commit --quiet --message ready"):
        git(tmp_path, *command.split())
    return tmp_path


def change(file, pattern, text):
    changed, count = re.subn(pattern, text, file.read_text(encoding="utf-8"))
    file.write_text(changed, encoding="utf-8")
    return count


def git(folder, *command):
    who = "-c", "user.name=somebody", "-c", "user.email=somebody@code.example"
    command = ["git", *who, *command]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def hindrances(*given):
    return list(release.hindrances(*given))


def test_nothing_stands_in_the_way_of_what_is_ready(ready):
    assert not hindrances(ready)
    git(ready, "tag", TAG)
    assert not hindrances(ready, TAG)


@pytest.mark.parametrize(
    ("file", "pattern", "text"),
    [
        *((file, "code.example", release.PLACEHOLDER) for file in release.PROJECTS),
        *((file, "(?m)^Issues = .*$", "") for file in release.PROJECTS),
        *((file, r"\[project\.urls\]", "[tool.urls]") for file in release.PROJECTS),
        *((file, "(?m)^version = .*$", 'version = "0.0.9"') for file in release.PROJECTS[1:]),
        ("files/pyproject.toml", r"mnemic==\S+\.\*", "mnemic==0.0.*"),
        ("CITATION.cff", "code.example", release.PLACEHOLDER),
        ("CITATION.cff", "(?m)^version: .*$", "version: 0.0.9"),
        ("CITATION.cff", "(?m)^version: .*$", ""),
        ("server.json", '(?m)^  "version": ".*"', '  "version": "0.0.9"'),
        ("server.json", '(?m)^      "version": ".*"', '      "version": "0.0.9"'),
        ("server.json", "https://code.example", f"https://{release.PLACEHOLDER}"),
        *((file, '"version": ".*"', '"version": "0.0.9"') for file in release.PLUGINS),
        *((file, "code.example", release.PLACEHOLDER) for file in release.PLUGINS),
        (release.BUNDLE, "(?m)^version = .*$", 'version = "0.0.9"'),
        (release.BUNDLE, r"==\S+\.\*", "==0.0.*"),
        (release.DIRECTORY, '"somebody"', ""),
        ("README.md", "<!-- mcp-name: .* -->", ""),
        ("CHANGELOG.md", r"\A.*2026-12-01", f"## [{VERSION}] - unreleased"),
        ("CHANGELOG.md", r"\A.*2026-12-01", "## [0.0.9] - 2026-12-01"),
    ],
)
def test_a_file_that_is_not_ready_is_named(ready, file, pattern, text):
    assert change(ready / file, pattern, text)
    (hindrance,) = hindrances(ready, TAG)
    assert hindrance.startswith(f"{file} ")


def test_a_tag_of_another_version_is_refused(ready):
    (hindrance,) = hindrances(ready, "v0.0.9")
    assert (
        hindrance == f"The tag v0.0.9 is not {TAG}, of Cargo.toml; tag the commit of that version."
    )


def test_a_version_is_released_once(ready):
    git(ready, "tag", TAG)
    (hindrance,) = hindrances(ready)
    assert hindrance == f"{TAG} is tagged already; raise the version in Cargo.toml."


def test_the_program_fails_while_something_is_not_ready(ready, capsys, monkeypatch):
    monkeypatch.setattr(release, "ROOT", ready)
    monkeypatch.setattr("sys.argv", ["release.py"])
    assert release.main() == 0
    assert capsys.readouterr().out == "Nothing stands in the way.\n"
    change(ready / "pyproject.toml", "code.example", release.PLACEHOLDER)
    assert release.main() == 1
    assert capsys.readouterr().out == (
        "pyproject.toml links to example.invalid; put the repository's address in its place.\n"
    )
