"""The examples run as they are shown."""

import re
import runpy

import pytest

import mnemic
from mnemic import Memory
from tests.support.embedders import WordEmbedder
from tests.support.paths import EXAMPLES


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples come with the repository")
def test_the_agent_remembers_more_with_every_turn_and_within_its_budget(capsys, monkeypatch):
    monkeypatch.setattr(mnemic, "Memory", lambda path: Memory(path, embedder=WordEmbedder(512)))
    runpy.run_path(str(EXAMPLES / "agent.py"), run_name="__main__")
    turns, block = capsys.readouterr().out.split("\nFor another prompt:\n")
    remembered = [int(number) for number in re.findall(r"^  (\d+) memories, ", turns, re.MULTILINE)]
    assert remembered == [0, 1, 2, 3, 4, 5]
    assert turns.count("remembered lines)") == 6
    assert 1 <= len(block.strip().splitlines()) <= 5
