"""Claude Code and Codex themselves load the plugin, start its server and run its hooks.

The environment variables MNEMIC_CLAUDE and MNEMIC_CODEX name their programs; the wheels of
claude-agent-sdk and openai-codex-cli-bin have them. No login is needed: a server of the test
answers in place of the model.
"""

import json
import os
import shlex
import subprocess
import sys

import pytest

from mnemic import Memory
from tests.mcp.language_models import ANSWER, language_model
from tests.support.paths import ROOT

MEMORY = "Deploys are on Mondays."
QUESTION = "When are deploys?"
TRIES = 3  # a hook that has to wait longer than its limit on a busy machine adds nothing


class CodingAgent:
    """A coding agent with a home of its own, and the memories that its hooks use.

    Args:
        program: The agent.
        folder: An empty folder.
        model: The server that answers in place of a model.
    """

    def __init__(self, program, folder, model):
        self.program, self.home, self.model = program, folder, model
        self.project, tools = folder / "project", folder / "bin"
        for made in (self.project / ".git", tools, folder / "run"):
            made.mkdir(mode=0o700, parents=True)
        command = tools / "mnemic"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mnemic.cli "$@"\n')
        command.chmod(0o700)
        self.file = folder / "m.db"
        self.environment = {
            "HOME": str(folder),
            "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "MNEMIC_DB": str(self.file),
            "MNEMIC_USER": "ana",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        with Memory(self.file, embedder=None) as memory:
            memory.add(MEMORY, user_id="ana")

    def runs(self, *arguments):
        """Run the agent in the project; return what it prints."""
        made = subprocess.run(
            [self.program, *arguments],
            env=self.environment,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert made.returncode == 0, made.stderr
        return made.stdout

    def is_installed(self, client):
        """Run `mnemic install`."""
        command = [sys.executable, "-m", "mnemic.cli", "install", client, "--hooks", "--yes"]
        subprocess.run(command, env=self.environment, check=True, capture_output=True)

    def is_asked(self, *arguments):
        """Run the agent with a question until no hook was late; return what the model was asked."""
        for _ in range(TRIES):
            self.model.asked.clear()
            assert ANSWER in self.runs(*arguments, QUESTION)
            log = self.home / "data" / "mnemic" / "hooks.log"
            if not log.exists():
                return json.dumps(self.model.asked)
            late = log.read_text()
            log.unlink()
        return late

    def stored(self):
        with Memory(self.file, embedder=None) as memory:
            return {(one.role, one.content) for one in memory.list(user_id="ana")}


@pytest.fixture
def agent_of(tmp_path):
    """Make the agent whose program a variable names."""
    with language_model() as model:

        def agent(variable):
            program = os.environ.get(variable)
            if not program:
                pytest.skip(f"{variable} names no program")
            return CodingAgent(program, tmp_path, model)

        yield agent


def is_recalled_and_stored(agent, asked):
    """Whether both hooks before the model told it the memory, and the hook after it stored."""
    assert asked.count(MEMORY) >= 2
    assert "mnemic keeps" in asked
    assert "Memories that may matter here" in asked
    assert agent.stored() == {(None, MEMORY), ("user", QUESTION), ("assistant", ANSWER)}


def test_claude_code_takes_the_plugin_and_recalls_and_stores_by_it(agent_of):
    agent = agent_of("MNEMIC_CLAUDE")
    agent.runs("plugin", "validate", "--strict", str(ROOT / "plugins" / "mnemic"))
    agent.runs("plugin", "validate", "--strict", str(ROOT))
    agent.runs("plugin", "marketplace", "add", str(ROOT))
    agent.runs("plugin", "install", "mnemic@mnemic")
    assert "Connected" in agent.runs("mcp", "list")
    is_recalled_and_stored(agent, agent.is_asked("-p"))


def test_claude_code_takes_what_install_writes(agent_of):
    agent = agent_of("MNEMIC_CLAUDE")
    agent.is_installed("claude")
    assert "Connected" in agent.runs("mcp", "list")
    is_recalled_and_stored(agent, agent.is_asked("-p"))


CODEX = [
    *("exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "-m", "none"),
    *("-c", "model_provider=local", "-c", 'model_providers.local.name="local"'),
]


def test_codex_takes_the_plugin_and_recalls_and_stores_by_it(agent_of):
    agent = agent_of("MNEMIC_CODEX")
    agent.runs("plugin", "marketplace", "add", str(ROOT))
    agent.runs("plugin", "add", "mnemic@mnemic")
    provider = f'model_providers.local.base_url="{agent.model.url}"'
    is_recalled_and_stored(agent, agent.is_asked(*CODEX, "-c", provider))


def test_codex_takes_what_install_writes(agent_of):
    agent = agent_of("MNEMIC_CODEX")
    agent.is_installed("codex")
    (server,) = json.loads(agent.runs("mcp", "list", "--json"))
    assert server["name"] == "mnemic"
    assert server["enabled"]
    provider = f'model_providers.local.base_url="{agent.model.url}"'
    is_recalled_and_stored(agent, agent.is_asked(*CODEX, "-c", provider))
