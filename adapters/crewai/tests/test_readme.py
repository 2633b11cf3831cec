"""The block of Python of README.md, and what it prints."""

import re
from pathlib import Path

from crewai.memory.storage.factory import set_memory_storage_factory

TEXT = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [code], [printed] = (
        re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL) for kind in ("python", "text")
    )
    try:
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - it is this project's
    finally:
        set_memory_storage_factory(None)
    assert capsys.readouterr().out == printed
