"""The bundle for programs that install servers from one file."""

import json
import re

import pytest

from tests.mcp.clients import ANNOTATIONS, Client, run, stdio_of
from tests.support.paths import ROOT

BUNDLE = ROOT / "plugins" / "mcpb"
if not BUNDLE.is_dir():
    pytest.skip("plugins/ comes with the repository", allow_module_level=True)


def manifest_of_it():
    return json.loads((BUNDLE / "manifest.json").read_text(encoding="utf-8"))


def test_the_bundle_has_what_its_format_knows():
    manifest = manifest_of_it()
    known = {"manifest_version", "name", "display_name", "version", "description", "author"}
    known |= {"repository", "homepage", "license", "keywords", "server", "tools"}
    known |= {"prompts_generated", "compatibility", "user_config"}
    assert set(manifest) == known
    assert manifest["manifest_version"] == "0.4"
    server = manifest["server"]
    assert set(server) == {"type", "entry_point", "mcp_config"}
    assert server["type"] == "uv"
    assert server["mcp_config"]["args"][-1] == server["entry_point"]
    assert (BUNDLE / server["entry_point"]).is_file()
    used = re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(server))
    assert sorted(used) == sorted(manifest["user_config"])
    for option in manifest["user_config"].values():
        assert option["default"] == ""  # an empty variable is none


def test_the_bundle_is_written_whole():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    files = re.search(r"zipfile -c \S+mnemic\.mcpb (.+)", makefile)[1].split()
    kept = {path.name for path in BUNDLE.iterdir() if path.is_file()}
    assert set(files) == kept


@run
async def test_the_bundle_starts_the_server_with_the_tools_that_it_names(tmp_path):
    manifest = manifest_of_it()
    command = [str(BUNDLE / manifest["server"]["entry_point"]), "--db", str(tmp_path / "m.db")]
    async with Client(stdio_of(*command)) as client:
        tools = {one.name: one.description for one in (await client.list_tools()).tools}
    named = {one["name"]: one["description"] for one in manifest["tools"]}
    assert named == {name: text.split("\n")[0] for name, text in tools.items()}
    assert set(named) == set(ANNOTATIONS)
