"""One query at a time, and several in one call, beside the peers."""

import numpy as np
import pytest

from benches.support.cases import HUNDRED_THOUSAND, MILLION, SMALL_TO_LARGE, WIDE
from benches.support.datasets import DIM
from benches.support.systems import BATCH_SCANS, SCANS, Hnswlib, Mnemic, installed

# An approximate answer may be bad, and on uniform rows it is; it must not be arbitrary.
LEAST_RECALL = 0.05
SINGLE = [
    (of, system)
    for of in (*SMALL_TO_LARGE, *WIDE, MILLION)
    for system in installed(
        (Mnemic, *SCANS, *((Hnswlib,) if of[2] == DIM and of != MILLION else ()))
    )
]


def name_of(value):
    return value.name if isinstance(value, type) else "{}-{}x{}".format(*value)


def is_long_build(of, system):
    return system is Hnswlib and of[1] == HUNDRED_THOUSAND[1] and of != HUNDRED_THOUSAND


@pytest.mark.parametrize(("case", "system"), SINGLE, indirect=["case"], ids=name_of)
def test_a_single_query(case, system, measure, request):
    if is_long_build(case.of, system) and not request.config.getoption("--graphs"):
        pytest.skip("needs --graphs")
    built = case.build(system)
    answers = [built.search(query) for query in case.queries]
    recall = case.check(built, answers)
    assert recall >= LEAST_RECALL
    measure(f"{case.name}, one query", built.name, built.search, case.queries, recall=recall)


@pytest.mark.parametrize("size", [8, 64])
@pytest.mark.parametrize("system", installed((Mnemic, *BATCH_SCANS, Hnswlib)), ids=name_of)
def test_a_batch(case, system, size, measure):
    built = case.build(system)
    batches = [case.queries[at : at + size] for at in range(0, len(case.queries), size)]
    recall = case.check(built, np.concatenate([built.batch(batch) for batch in batches]))
    group = f"{case.name}, a query in a batch of {size}"
    measure(group, built.name, built.batch, batches, recall=recall, per_call=size)
