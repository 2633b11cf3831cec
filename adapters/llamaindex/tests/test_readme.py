"""The block of Python of README.md, and what it prints."""

import re
from pathlib import Path

TEXT = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [code], [printed] = (
        re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL) for kind in ("python", "text")
    )
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - it is this project's
    assert capsys.readouterr().out == printed
