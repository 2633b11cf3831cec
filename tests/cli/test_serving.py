"""The verb mcp, where it cannot serve."""

import os
import socket
import subprocess
import sys

import pytest


def served(*arguments, code="", **environment):
    code += "import sys; from mnemic.cli.main import main; sys.exit(main(['mcp', *sys.argv[1:]]))"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_server_is_for_one_user(tmp_path):
    made = served("--all-users", "--db", str(tmp_path / "m.db"))
    assert made.returncode == 1
    assert made.stderr.startswith("mnemic: a server is for one user")


def test_a_missing_library_is_named_with_its_extra(tmp_path):
    hidden = "import sys; sys.modules['mcp'] = None; "
    made = served("--db", str(tmp_path / "m.db"), code=hidden)
    assert made.returncode == 1
    assert made.stderr == "mnemic: mnemic mcp needs mcp: python -m pip install 'mnemic[mcp]'\n"


def test_a_token_that_can_be_guessed_is_refused(tmp_path):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    place = ("--db", str(tmp_path / "m.db"))
    made = served("--http", "--port", "0", *place, MNEMIC_MCP_TOKEN="short")  # noqa: S106 - it is refused
    assert made.returncode == 1
    assert "MNEMIC_MCP_TOKEN has fewer than 16 characters" in made.stderr


def test_a_port_that_is_taken_is_an_error_of_one_line(tmp_path):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        made = served("--http", "--port", port, "--db", str(tmp_path / "m.db"))
    assert made.returncode == 1
    assert len(made.stderr.splitlines()) == 1


@pytest.mark.parametrize("port", ["70000", "-1", "x"])
def test_a_port_that_is_none_is_a_mistake_in_the_command(port):
    made = served("--http", "--port", port)
    assert made.returncode == 2
    assert len(made.stderr.splitlines()) == 1
