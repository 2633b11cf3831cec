"""The programs of the README of the adapter whose folder pytest runs in."""

import re
import subprocess
import sys
from pathlib import Path


def test_the_programs_of_the_readme_print_what_stands_below_them(tmp_path: Path) -> None:
    text = Path("README.md").read_text("utf-8")
    programs, printed = (
        "".join(re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)) for kind in ("python", "text")
    )
    assert programs
    command = [sys.executable, "-c", programs]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
