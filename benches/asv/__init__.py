"""The asv suite: `make asv` measures the installed mnemic, without building another.

What a benchmark needs is made by its first call, during the warm-up, and kept: asv runs a `setup`
before every single timed call, which would then find cold caches.
"""

import sys
from pathlib import Path

# asv starts its processes elsewhere; the data come from the modules beside this package.
sys.path.insert(0, str(Path(__file__).parents[2]))


class Timed:
    """Half a second of samples, in a process of its own, once all is warm."""

    rounds = 1
    repeat = (3, 100, 0.5)
    sample_time = 0.005
    warmup_time = 1.0
    timeout = 120
