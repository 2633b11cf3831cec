"""The README's Python runs, and prints what stands below it."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_blocks_of_the_readme_run_and_print_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(\w+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    programs = [text for kind, text in blocks if kind == "python"]
    expected = [text for kind, text in blocks if kind == "text"]
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for program in programs:
            exec(program, names)  # noqa: S102 - the README's own
    assert programs
    assert printed.getvalue() == "".join(expected)
