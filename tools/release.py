"""Say what stands in the way of a release: `python tools/release.py [TAG]`.

Links have to be set, all files have to name the version of Cargo.toml, and the changelog its day.
A tag that is given has to be the version's; without one, the version must not be tagged yet.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "example.invalid"
"""A host that no one can have; it stands in links until the project has one."""
PROJECTS = (
    "pyproject.toml",
    "models/minilm/pyproject.toml",
    "models/e5/pyproject.toml",
    "files/pyproject.toml",
)
SERVER = "server.json"
BUNDLE = "plugins/mcpb/pyproject.toml"
PLUGINS = (
    "plugins/mnemic/.claude-plugin/plugin.json",
    "plugins/mnemic/.codex-plugin/plugin.json",
    "plugins/mcpb/manifest.json",
)
DIRECTORY = "glama.json"
OWNER = "invalid.example/"
"""What the registry of MCP servers has before a name, until the project has an address."""
LINKS = {"Repository", "Documentation", "Changelog", "Issues"}


def hindrances(root: Path, tag: str = "") -> Iterator[str]:
    """Yield a sentence, with what to do, for each thing that a release waits for."""
    version = toml(root / "Cargo.toml")["workspace"]["package"]["version"]
    yield from links(root)
    yield from versions(root, version)
    heading = f"## [{version}] - "
    with_day = re.compile(rf"^{re.escape(heading)}\d{{4}}-\d\d-\d\d$", re.MULTILINE)
    if not with_day.search(text(root, "CHANGELOG.md")):
        yield f"CHANGELOG.md has no line {heading}YEAR-MONTH-DAY; write the day of the release."
    if tag and tag != f"v{version}":
        yield f"The tag {tag} is not v{version}, of Cargo.toml; tag the commit of that version."
    if not tag and f"v{version}" in tags(root):
        yield f"v{version} is tagged already; raise the version in Cargo.toml."


def links(root: Path) -> Iterator[str]:
    """Yield a sentence for each file whose links are missing or not set."""
    for name in PROJECTS:
        missing = LINKS - toml(root / name)["project"].get("urls", {}).keys()
        if missing:
            yield f"{name} has no {', '.join(sorted(missing))} in [project.urls]; add them."
    for name in (*PROJECTS, "CITATION.cff", SERVER, *PLUGINS):
        if PLACEHOLDER in text(root, name):
            yield f"{name} links to {PLACEHOLDER}; put the repository's address in its place."
    if not json.loads(text(root, DIRECTORY))["maintainers"]:
        yield f"{DIRECTORY} names no maintainer; write the names of their accounts."
    registered = json.loads(text(root, SERVER))["name"]
    if registered.startswith(OWNER):
        yield f"{SERVER} has the name {registered}; put the owner's in its place."
    if f"<!-- mcp-name: {registered} -->" not in text(root, "README.md"):
        yield f"README.md has no line <!-- mcp-name: {registered} -->; the registry looks for it."


def versions(root: Path, version: str) -> Iterator[str]:
    """Yield a sentence for each file that names another version."""
    minilm, e5, files, bundle = (toml(root / name)["project"] for name in (*PROJECTS[1:], BUNDLE))
    cited = re.search(r"^version: (.+)$", text(root, "CITATION.cff"), re.MULTILINE)
    named = {
        "models/minilm/pyproject.toml": minilm["version"],
        "models/e5/pyproject.toml": e5["version"],
        "files/pyproject.toml": files["version"],
        BUNDLE: bundle["version"],
        "CITATION.cff": cited and cited[1],
        **{name: json.loads(text(root, name))["version"] for name in (SERVER, *PLUGINS)},
    }
    for name, other in named.items():
        if other != version:
            yield f"{name} has version {other}, Cargo.toml {version}; write the same."
    package = json.loads(text(root, SERVER))["packages"][0]["version"]
    if package != version:
        yield f"{SERVER} has a package of version {package}, Cargo.toml {version}; write the same."
    series = f"=={version.rpartition('.')[0]}.*"
    for name, project in ((PROJECTS[3], files), (BUNDLE, bundle)):
        if not any(one.endswith(series) for one in project["dependencies"]):
            yield f"{name} does not depend on mnemic{series}; it uses what that series has."


def tags(root: Path) -> list[str]:
    """Return the tags of the repository."""
    command = ["git", "tag", "--list"]
    shown = subprocess.run(  # noqa: S603 - constants
        command, cwd=root, check=True, capture_output=True, text=True
    )
    return shown.stdout.split()


def text(root: Path, name: str) -> str:
    """Return what a file says."""
    return (root / name).read_text(encoding="utf-8")


def toml(path: Path) -> dict[str, Any]:
    """Return what a file of settings says."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def main() -> int:
    """Print what a release waits for; return 1 if it waits."""
    found = list(hindrances(ROOT, *sys.argv[1:]))
    sys.stdout.writelines(f"{line}\n" for line in found or ["Nothing stands in the way."])
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
