"""The asv suite: `make asv` measures the installed mnemic, without building another.

The first call of a benchmark makes its data, which stay. asv runs a `setup` before every call that
it times, each by itself; that of each benchmark calls it a few times, once and for all, so that the
single call of `asv run --quick` finds its data and warm caches too.
"""

import sys
from functools import cache, partial
from pathlib import Path

# asv starts its processes elsewhere; the data come from the modules beside this package.
sys.path.insert(0, str(Path(__file__).parents[2]))


WARM_CALLS = 3


class FirstCalls:
    """The calls of a benchmark before it is timed, with each of its parameters."""

    def __init__(self, call):
        self._call = call

    @cache  # noqa: B019 - as many as there are benchmarks
    def setup(self, *given):
        for _ in range(WARM_CALLS):
            self._call(*given)


class Timed:
    """Half a second of calls, in a process of its own, after warm-up."""

    rounds = 1
    repeat = (3, 20_000, 0.5)
    warmup_time = 1.0
    timeout = 120

    def __init_subclass__(cls):
        for name, call in vars(cls).items():
            if name.startswith("time_"):
                call.setup = FirstCalls(partial(call, cls())).setup
