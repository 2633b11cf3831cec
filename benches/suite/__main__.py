"""The suite: `python -m benches.suite [pytest's options] [--million] [--graphs]`.

The vectors beside exact and approximate peers, every system by itself, call after call, with its
answers checked: single queries and batches. For ratios see benches.vector_map.
"""

import sys
from pathlib import Path

import pytest

from benches.support import environment

RECORD = Path("target") / "bench-data" / "suite.json"


def main():
    environment.restart_at_their_best()
    print(environment.title(environment.machine()), flush=True)
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    options = [
        str(Path(__file__).parent),
        "--quiet",
        "--benchmark-quiet",
        "--benchmark-disable-gc",
        "--benchmark-max-time=0.5",
        f"--benchmark-json={RECORD}",
        "--override-ini=timeout=0",
        # Peers warn about their own code; that is not ours to fix.
        "--pythonwarnings=ignore",
    ]
    return pytest.main([*options, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
