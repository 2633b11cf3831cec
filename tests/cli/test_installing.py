"""The verb install: the files of clients, what it shows, and that it can be taken back."""

import json
import os
import subprocess
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import InvalidArgumentError
from mnemic.mcp.clients import Entry, json_with_hooks, json_with_server, toml_with_server

CLAUDE = json.dumps({"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}, indent=2)
CODEX = (
    '# mine\nmodel = "o9"\n\n[mcp_servers.other]\ncommand = "x"\n\n[projects."/a"]\ntrust = "y"\n'
)
SETTINGS = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}})
ENTRY = Entry(["/bin/mnemic"], ["--user", "ana"])


class Home:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def runs(self, *arguments, given=""):
        kept = {name: value for name, value in os.environ.items() if name != "CODEX_HOME"}
        return subprocess.run(
            [sys.executable, "-m", "mnemic.cli", "install", *arguments],
            env=kept | {"HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder)},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )

    def files(self):
        return {path.name for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def test_the_change_is_shown_and_not_made_without_a_yes(home):
    path = home.path(".claude.json")
    path.write_text(CLAUDE)
    made = home.runs("claude")
    assert made.returncode == 1
    assert '+    "mnemic": {' in made.stdout
    assert path.read_text() == CLAUDE


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".claude.json", CLAUDE),
        ("cursor", ".cursor/mcp.json", CLAUDE + "\n"),
        ("codex", ".codex/config.toml", CODEX),
    ],
)
def test_a_change_is_taken_back_to_the_last_byte(home, client, name, text):
    path = home.path(name)
    path.write_text(text)
    path.chmod(0o640)
    assert home.runs(client, "--yes", "--user", "ana").returncode == 0
    made = path.read_text()
    settings = tomllib.loads(made) if name.endswith("toml") else json.loads(made)
    servers = settings["mcp_servers" if name.endswith("toml") else "mcpServers"]
    assert servers["other"] == {"command": "x"}
    assert servers["mnemic"]["args"][-3:] == ["mcp", "--user", "ana"]
    assert path.stat().st_mode & 0o777 == 0o640
    assert home.runs(client, "--yes", "--user", "ana").stderr == "mnemic: nothing to change\n"
    assert home.runs(client, "--undo", "--yes").returncode == 0
    assert path.read_text() == text
    assert home.files() == {path.name}


@pytest.mark.parametrize("client", ["claude", "codex", "cursor"])
def test_a_file_that_was_not_there_is_gone_afterwards(home, client):
    assert home.runs(client, "--yes").returncode == 0
    assert home.runs(client, "--yes", "--user", "ana").returncode == 0
    assert home.runs(client, "--undo", "--yes").returncode == 0
    assert not home.files()


def test_an_entry_of_ones_own_comes_back(home):
    path = home.path(".cursor/mcp.json")
    own = '{"mcpServers": {"mnemic": {"command": "mine"}}}'
    path.write_text(own)
    home.runs("cursor", "--yes")
    home.runs("cursor", "--yes", "--user", "ana")
    home.runs("cursor", "--undo", "--yes")
    assert path.read_text() == own


def test_without_its_copy_a_file_keeps_all_but_the_server(home):
    path = home.path(".cursor/mcp.json")
    path.write_text(CLAUDE)
    home.runs("cursor", "--yes")
    path.with_name("mcp.json.before-mnemic").unlink()
    home.runs("cursor", "--undo", "--yes")
    assert json.loads(path.read_text()) == json.loads(CLAUDE)


def test_what_others_wrote_meanwhile_stays(home):
    path = home.path(".claude.json")
    path.write_text(CLAUDE)
    home.runs("claude", "--yes")
    settings = json.loads(path.read_text()) | {"numStartups": 4}
    path.write_text(json.dumps(settings, indent=2))
    home.runs("claude", "--undo", "--yes")
    assert json.loads(path.read_text()) == json.loads(CLAUDE) | {"numStartups": 4}


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".claude.json", '{"a": 1, // a remark\n}'),
        ("claude", ".claude.json", '["a"]'),
        ("claude", ".claude.json", '{"mcpServers": []}'),
        ("codex", ".codex/config.toml", "model = \n"),
        ("codex", ".codex/config.toml", 'mcp_servers = {mnemic = {command = "x"}}\n'),
    ],
)
def test_a_file_that_cannot_be_understood_stays_as_it_is(home, client, name, text):
    path = home.path(name)
    path.write_text(text)
    made = home.runs(client, "--yes")
    assert made.returncode == 1
    assert "nothing was changed" in made.stderr
    assert path.read_text() == text
    assert home.files() == {path.name}


def test_hooks_are_added_beside_others_and_removed_alone(home):
    path = home.path(".claude/settings.json")
    path.write_text(SETTINGS)
    assert home.runs("claude", "--hooks", "--yes", "--user", "ana maria").returncode == 0
    hooks = json.loads(path.read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}
    assert hooks["Stop"][0]["hooks"][0]["command"] == "x"
    assert hooks["Stop"][1]["hooks"][0]["command"].endswith(" hook stop --user 'ana maria'")
    assert home.runs("claude", "--undo", "--yes").returncode == 0
    assert path.read_text() == SETTINGS


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:hunter2@db.example/mnemic",
        "postgresql://ana:hunter2/@?@db.example/mnemic",
        "postgresql://:hunter2@db.example",
        "postgresql://db.example/mnemic?user=ana&password=hunter2",
        "postgresql://db.example/mnemic?sslPassword=hunter2",
    ],
)
@pytest.mark.parametrize("client", ["claude", "codex", "cursor"])
def test_a_password_in_a_url_is_neither_shown_nor_written(home, client, url):
    made = home.runs(client, "--yes", "--db", url)
    assert made.returncode == 1
    assert "~/.pgpass" in made.stderr
    assert "hunter2" not in made.stdout + made.stderr
    assert not home.files()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///mnemic",
        "postgresql://ana@db.example:5432,other.example:5432/mnemic",
        "postgresql://db.example:5432/mnemic?user=ana",
    ],
)
def test_a_url_without_a_password_is_written(home, url):
    assert home.runs("claude", "--yes", "--db", url).returncode == 0
    settings = json.loads(home.path(".claude.json").read_text())
    assert settings["mcpServers"]["mnemic"]["args"] == ["mcp", "--db", url]


def test_a_name_with_a_space_is_quoted():
    text = json_with_hooks("", Entry(["/my folder/mnemic"]))
    assert "'/my folder/mnemic' hook stop" in text
    assert json_with_hooks(text, None) == "{}\n"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["mcpServers", "hooks", "a"]) | st.text(), VALUES))
def test_all_other_settings_stay(settings):
    text = json.dumps(settings)
    for edit, name in ((json_with_server, "mcpServers"), (json_with_hooks, "hooks")):
        try:
            made = json.loads(edit(text, ENTRY))
        except InvalidArgumentError:
            continue
        assert {key: made[key] for key in settings if key != name} == {
            key: settings[key] for key in settings if key != name
        }
        taken_back = json.loads(edit(json.dumps(made), None))
        assert taken_back == {
            key: settings[key] for key in settings if settings[key] or key != name
        }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1",
        CODEX,
        '[mcp_servers.mnemic]\ncommand = "old"\n[mcp_servers.mnemic.env]\nA = "b"\n[x]\ny = 1\n',
        'a = """\n[mcp_servers.mnemic]\n"""\n',
    ],
)
def test_the_rest_of_a_toml_file_stays(text):
    try:
        made = toml_with_server(text, ENTRY)
    except InvalidArgumentError:
        assert '"""' in text
        return
    servers = tomllib.loads(made)["mcp_servers"]
    assert servers.pop("mnemic") == {"command": "/bin/mnemic", "args": ["mcp", "--user", "ana"]}
    before = tomllib.loads(text)
    before.get("mcp_servers", {}).pop("mnemic", None)
    after = tomllib.loads(toml_with_server(made, None))
    assert after == {name: value for name, value in before.items() if value}
