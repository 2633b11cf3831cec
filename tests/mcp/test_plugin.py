"""The plugin for Claude Code and Codex, and what the registry of servers is told."""

import base64
import json
import re
import shlex
import tomllib
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from mnemic.mcp.hook import EVENTS, STORING
from tests.support.paths import ROOT

PLUGIN = ROOT / "plugins" / "mnemic"
if not PLUGIN.is_dir():
    pytest.skip("plugins/ comes with the repository", allow_module_level=True)


def read(*parts):
    return json.loads(ROOT.joinpath(*parts).read_text(encoding="utf-8"))


def commands(name):
    hooks = read("plugins", "mnemic", "hooks", name)["hooks"]
    return {
        event: hook["command"]
        for event, groups in hooks.items()
        for group in groups
        for hook in group["hooks"]
    }


@pytest.mark.parametrize("name", ["hooks.json", "codex.json"])
def test_hooks_run_what_there_is_and_never_fail(name):
    for event, command in commands(name).items():
        run = re.fullmatch(r"mnemic hook (\S+) 2>/dev/null \|\| true", command)[1]
        assert EVENTS.get(run, event) == event
        assert run in {*EVENTS, *STORING}


def test_codex_has_the_hooks_of_claude_but_for_the_end_of_a_session():
    claude = commands("hooks.json")
    assert claude.pop("SessionEnd")
    assert commands("codex.json") == claude


def test_marketplaces_lead_to_the_plugin():
    (of_claude,) = read(".claude-plugin", "marketplace.json")["plugins"]
    (of_codex,) = read(".agents", "plugins", "marketplace.json")["plugins"]
    for entry, source in ((of_claude, of_claude["source"]), (of_codex, of_codex["source"]["path"])):
        assert entry["name"] == "mnemic"
        assert (ROOT / source).resolve() == PLUGIN


def test_both_manifests_say_the_same_and_name_files_that_are_there():
    claude = read("plugins", "mnemic", ".claude-plugin", "plugin.json")
    codex = read("plugins", "mnemic", ".codex-plugin", "plugin.json")
    assert {name: codex[name] for name in claude} == claude
    for name in ("skills", "mcpServers", "hooks"):
        assert (PLUGIN / codex[name]).exists()


def test_the_first_line_says_what_is_stored_unasked():
    for page in (PLUGIN / "README.md", ROOT / "docs" / "build" / "mcp.md"):
        title, _, first, *_ = page.read_text(encoding="utf-8").splitlines()
        assert title.startswith("# ")
        assert "Without being asked" in first
        assert "MNEMIC_CAPTURE=off" in first


def test_the_registry_is_told_of_the_package():
    server = read("server.json")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (package,) = server["packages"]
    assert package["identifier"] == project["name"]
    assert package["version"] == server["version"]
    assert len(server["description"]) <= 100
    assert "mnemic" in project["scripts"]
    assert f"<!-- mcp-name: {server['name']} -->" in (ROOT / "README.md").read_text("utf-8")


def test_links_that_install_name_what_the_registry_is_told():
    page = (ROOT / "docs" / "build" / "mcp.md").read_text(encoding="utf-8")
    of_cursor = urlsplit(re.search(r"`(cursor://\S+)`", page)[1])
    asked = parse_qs(of_cursor.query)
    assert (of_cursor.netloc, of_cursor.path) == ("anysphere.cursor-deeplink", "/mcp/install")
    assert asked["name"] == ["mnemic"]
    cursor = json.loads(base64.b64decode(asked["config"][0], validate=True))
    code = json.loads(unquote(re.search(r"`vscode:mcp/install\?(\S+)`", page)[1]))
    assert code == {"name": "mnemic"} | cursor
    (package,) = read("server.json")["packages"]
    assert cursor["command"] == package["runtimeHint"]
    assert cursor["args"] == ["--from", f"{package['identifier']}[local,mcp]", "mnemic", "mcp"]
    assert f"-- {shlex.join(['uvx', *cursor['args']])}`" in page
