"""Folders that tests read from."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
EXAMPLES = ROOT / "examples"
DEMO = ROOT / "python" / "mnemic" / "demo"
SAMPLES = ROOT / "tests" / "samples"


def names_in(folder):
    return sorted(path.name for path in Path(folder).iterdir())
