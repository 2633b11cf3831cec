"""The clock, percentiles, and how systems take turns."""

import time
from itertools import cycle, islice

import numpy as np


class Clock:
    """Seconds, by the clock on the wall or by work done."""

    now = staticmethod(time.perf_counter)

    def __call__(self):
        return self.now()


clock = Clock()


def work():
    """Return the processor time of this process, and of the programs that it ran."""
    import resource  # noqa: PLC0415 - Windows has none

    ran = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ran.ru_utime + ran.ru_stime


def timed(call, *arguments):
    """Return the seconds a call took, and its answer."""
    begin = clock()
    answer = call(*arguments)
    return clock() - begin, answer


P95_GOAL_MS = 100
"""Goal of the specifications for the 95th percentile of a search, a retrieval and a recall."""


def p95(seconds):
    """Return the 95th percentile in milliseconds."""
    return float(np.quantile(seconds, 0.95)) * 1e3


def quartile(seconds):
    """Return the lower quartile in microseconds."""
    return float(np.quantile(seconds, 0.25)) * 1e6


def interleave(searches, arguments, rounds, turn):
    """Let each search answer `turn` arguments before the next; return microseconds a call."""
    times = {name: [] for name in searches}
    upcoming = cycle(arguments)
    for _ in range(rounds):
        some = list(islice(upcoming, turn))
        for name, search in searches.items():
            times[name] += [timed(search, argument)[0] for argument in some]
    return {name: quartile(seconds) for name, seconds in times.items()}
