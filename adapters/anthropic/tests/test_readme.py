"""The program of the README runs, and prints what stands below it."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_program_of_the_readme_prints_what_stands_below_it(tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ,
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout == shown
