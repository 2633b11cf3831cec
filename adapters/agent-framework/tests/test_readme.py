import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", README, re.DOTALL)


def test_the_code_of_the_readme_runs_and_prints_what_stands_below_it(tmp_path):
    assert len(BLOCKS) == 1
    for code, printed in BLOCKS:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, printed), done.stderr
