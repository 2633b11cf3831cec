"""A signal handler uses memories at random moments of each of their calls.

A program: `python -m tests.faults.signal_workload KIND SECONDS URL COPY FOLDER` prints, as JSON,
what became of the handler's calls. KIND is one of `tests.support.everything.OPTIONS`.
"""

import faulthandler
import json
import signal
import sys
import time
from collections import Counter

from mnemic.errors import BusyThreadError, MnemicError
from tests.support.everything import Everything, chance, text

LONGEST = 0.003
"""Most seconds between two signals."""


class Handler:
    """Makes a call whenever a signal arrives, and counts what became of it.

    Args:
        everything: Has the calls.
    """

    def __init__(self, everything):
        self.calls = everything.frequent() | {"note": self.note}
        self.other = everything.other
        self.outcomes, self.notes, self.slowest = Counter(), [], (0.0, "")
        self.is_armed = False

    def note(self):
        self.notes.append(self.other.add(text()).id)

    def arm(self):
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, LONGEST))

    def __call__(self, *_):
        name = chance.choice([*self.calls, "note", "note"])
        begun = time.monotonic()
        try:
            self.calls[name]()
            self.outcomes["answered"] += 1
        except BusyThreadError:
            self.outcomes["refused"] += 1
        except MnemicError as error:
            self.outcomes[f"{name}: {type(error).__name__}"] += 1
        self.slowest = max(self.slowest, (time.monotonic() - begun, name))
        if self.is_armed:
            self.arm()

    def interrupt(self, call, seconds):
        """Make a call for some time, with signals."""
        ends = time.monotonic() + seconds
        self.is_armed = True
        self.arm()
        while time.monotonic() < ends:
            call()
        self.is_armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(kind, seconds, url, copy, folder):
    faulthandler.dump_traceback_later(280, exit=True)
    everything = Everything(kind, 1000, url, copy, folder)
    handler = Handler(everything)
    signal.signal(signal.SIGALRM, handler)
    calls = everything.frequent() | everything.rare()
    for name, call in calls.items():
        handler.interrupt(lambda name=name, call=call: everything.make(name, call), float(seconds))
    kept = everything.other.get_many(handler.notes)
    problems = everything.memory.verify().problems
    everything.close()
    told = {
        "outcomes": handler.outcomes,
        "slowest": handler.slowest,
        "lost": len(handler.notes) - len(kept),
        "notes": len(handler.notes),
        "problems": list(map(str, problems)),
        "errors": everything.errors,
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
