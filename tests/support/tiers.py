"""Which tests a run has, and how long its random tests go on.

`make test` leaves out what takes long or differs little: the folders and kinds of store
named here. Its random tests try few examples, always the same. `make test-all` runs the rest after
it, and ten times as many examples from a random seed, which it prints; `make test-all SEED=…` tries
the same again. The environment variable `MNEMIC_TESTS` names the tier of a run of pytest: "quick"
unless given, "rest" of `make test-all`, "all" for both, or "torture". Where files or folders are
named, "quick" leaves out none of their tests.
"""

import os
import random
import zlib
from pathlib import Path

from hypothesis import settings

TESTS = Path(__file__).resolve().parents[1]

TIER = os.environ.get("MNEMIC_TESTS", "quick")

LONG_FOLDERS = {"faults", "store/postgres"}
LONG_KINDS = {
    *("sealed", "sealed postgres", "pooled postgres", "guarded"),
    *("postgres-search", "postgres-policies", "postgres-pooler"),
}
"""Kinds of store that differ from others by one part, which has tests of its own."""

SEED = int(os.environ.get("MNEMIC_SEED", "0"))
"""Of the random tests, but for `make test`."""

FEW = 10
"""Examples that Hypothesis tries at least, in `make test`."""


def amount(number, least=1):
    """Return how often this run repeats what `make test-all` repeats so often."""
    if TIER == "quick":
        return max(min(number, least), number // 10)
    return number * 40 if TIER == "torture" else number


def examples(number, *parent, least=FEW, **options):
    """Return settings of a property that `make test-all` tries on so many examples."""
    return settings(*parent, max_examples=amount(number, least), **options)


def seeds(number):
    """Return the seeds of a test that `make test-all` repeats so often."""
    if TIER == "quick":
        return range(amount(number))
    return random.Random(SEED).sample(range(2**32), amount(number))  # noqa: S311 - no secrets


def leaves_out_long(config):
    """Return whether this run leaves out what takes long."""
    return TIER == "quick" and all(Path(name).resolve() == TESTS for name in config.args)


def is_of_this_run(config, item):
    """Return whether a collected test belongs to this run."""
    if leaves_out_long(config):
        return not is_long(item)
    return TIER != "rest" or is_long(item) or is_random(item)


def is_long(item):
    """Return whether `make test` leaves a test out."""
    is_in_long_folder = str(item.path.parent.relative_to(TESTS)) in LONG_FOLDERS
    values = params_of(item).values()
    return is_in_long_folder or any(isinstance(one, str) and one in LONG_KINDS for one in values)


def is_random(item):
    """Return whether a test tries more in `make test-all`: examples, or a parameter "seed"."""
    has_examples = getattr(item.obj, "is_hypothesis_test", False)
    return has_examples or item.path.stem.endswith("_property") or "seed" in params_of(item)


def params_of(item):
    """Return the parameters of a collected test by their names."""
    return item.callspec.params if hasattr(item, "callspec") else {}


def is_sampled(name):
    """Return whether this run does something long after the test of a name: after one of ten."""
    return TIER != "quick" or zlib.crc32(name.encode()) % 10 == 0


settings.register_profile("quick", derandomize=True, deadline=None, max_examples=FEW)
settings.register_profile("all", deadline=None, print_blob=True)
settings.register_profile("rest", settings.get_profile("all"))
settings.register_profile("torture", settings.get_profile("all"), max_examples=4000)
settings.load_profile(TIER)
