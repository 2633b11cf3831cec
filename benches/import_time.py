"""How long importing takes, over a bare Python: `python -m benches.import_time`.

Each statement runs in fresh processes, in turn with the others; medians of the differences. Byte
code is cached, as in an installed package, whatever PYTHONDONTWRITEBYTECODE is here.
"""

import os
import statistics
import subprocess
import sys
import time

STATEMENTS = {
    "bare Python": "pass",
    "numpy": "import numpy",
    "mnemic": "import mnemic",
    "mnemic.Memory": "from mnemic import Memory",
}
ROUNDS = 21
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def seconds(statement):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, env=ENVIRONMENT)  # noqa: S603
    return time.perf_counter() - start


def main():
    for statement in STATEMENTS.values():
        seconds(statement)
    rounds = [{name: seconds(code) for name, code in STATEMENTS.items()} for _ in range(ROUNDS)]

    def over(name, base):
        return 1000 * statistics.median(times[name] - times[base] for times in rounds)

    print(f"numpy over bare Python          {over('numpy', 'bare Python'):7.1f} ms")
    print(f"mnemic over bare Python         {over('mnemic', 'bare Python'):7.1f} ms  (goal 30)")
    print(f"mnemic.Memory over numpy        {over('mnemic.Memory', 'numpy'):7.1f} ms  (goal 60)")


if __name__ == "__main__":
    main()
