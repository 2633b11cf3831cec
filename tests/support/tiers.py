"""How long random tests go on: a little in `make test`, more in `make test-all`, long in torture.

`make test` tries few examples, always the same. `make test-all` tries ten times as many, from a
random seed that it prints; `make test-all SEED=…` tries the same again. The environment variable
`MNEMIC_TESTS=torture` tries forty times as many as that.
"""

import os
import random

from hypothesis import settings

TIER = os.environ.get("MNEMIC_TESTS", "quick")
"""What this run is: "quick" of `make test`, "all" of `make test-all`, or "torture"."""

SEED = int(os.environ.get("MNEMIC_SEED", "0"))
"""Of the random tests, but for `make test`."""

FEW = 10
"""Examples that Hypothesis tries at least, in `make test`."""


def amount(number, least=1):
    """Return how often this run repeats what `make test-all` repeats so often."""
    if TIER == "quick":
        return max(min(number, least), number // 10)
    return number * 40 if TIER == "torture" else number


def examples(number, *parent, **options):
    """Return settings of a property that `make test-all` tries on so many examples."""
    return settings(*parent, max_examples=amount(number, FEW), **options)


def seeds(number):
    """Return the seeds of a test that `make test-all` repeats so often."""
    if TIER == "quick":
        return range(amount(number))
    return random.Random(SEED).sample(range(2**32), amount(number))  # noqa: S311 - no secrets


settings.register_profile("quick", derandomize=True, deadline=None, max_examples=FEW)
settings.register_profile("all", deadline=None, print_blob=True)
settings.register_profile("torture", deadline=None, print_blob=True, max_examples=4000)
settings.load_profile(TIER)
