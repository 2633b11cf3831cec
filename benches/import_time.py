"""How long importing takes: `python -m benches.import_time`.

Each statement runs in fresh processes, in turn with the others, from the start of the interpreter
to its end; medians of elapsed and of processor time. Byte code is cached, as in an installed
package, whatever PYTHONDONTWRITEBYTECODE is here. Where the package typing_extensions is installed,
msgspec imports it, and with it inspect: some 10 ms of these times.
"""

import os
import statistics
import subprocess
import sys
import time
from resource import RUSAGE_CHILDREN, getrusage

STATEMENTS = {
    "bare Python": "pass",
    "numpy": "import numpy",
    "mnemic, goal 30": "import mnemic",
    "mnemic.Memory, goal 60": "from mnemic import Memory",
    "a text stored": "from mnemic import Memory; Memory(':memory:', embedder=None).add('x')",
}
ROUNDS = 21
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def milliseconds(statement):
    """Return the elapsed time and the processor time of a process that runs a statement."""
    start, before = time.perf_counter(), sum(getrusage(RUSAGE_CHILDREN)[:2])
    subprocess.run([sys.executable, "-c", statement], check=True, env=ENVIRONMENT)  # noqa: S603
    elapsed, used = time.perf_counter() - start, sum(getrusage(RUSAGE_CHILDREN)[:2]) - before
    return 1000 * elapsed, 1000 * used


def main():
    times = {name: [] for name in STATEMENTS}
    for _ in range(ROUNDS):
        for name, statement in STATEMENTS.items():
            times[name].append(milliseconds(statement))
    for name, of_rounds in times.items():
        elapsed, used = map(statistics.median, zip(*of_rounds, strict=True))
        print(f"{name:23} {elapsed:6.1f} ms in all, {used:6.1f} ms of the processor")


if __name__ == "__main__":
    main()
