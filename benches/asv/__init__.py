"""The asv suite: `make asv` measures the installed mnemic, without building another.

The first call of a benchmark, during the warm-up, makes its data, which stay: asv runs a `setup`
before every single timed call, which would then find cold caches.
"""

import sys
from pathlib import Path

# asv starts its processes elsewhere; the data come from the modules beside this package.
sys.path.insert(0, str(Path(__file__).parents[2]))


class Timed:
    """Half a second of samples, in a process of its own, after warm-up."""

    rounds = 1
    repeat = (3, 100, 0.5)
    sample_time = 0.005
    warmup_time = 1.0
    timeout = 120
