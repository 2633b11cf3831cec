"""Putting rows in."""

import numpy as np

from mnemic import VectorMap


def filled(case):
    vectors = VectorMap(case.rows.shape[1], metric="inner_product")
    vectors.replace(np.arange(len(case.rows)), case.rows)
    return vectors


def test_overwriting_one_row(case, measure):
    vectors = filled(case)
    rows = [(np.array([at]), case.rows[at][None]) for at in range(1000)]
    measure(f"{case.name}, writes", "upsert of one", lambda row: vectors.upsert(*row), rows)
    assert len(vectors) == len(case.rows)
    assert np.array_equal(vectors.get(np.arange(1000)), case.rows[:1000])


def test_replacing_everything(case, measure):
    vectors, ids = filled(case), np.arange(len(case.rows))
    measure(
        f"{case.name}, writes",
        "replace",
        lambda rows: vectors.replace(ids, rows),
        [case.rows[::-1], case.rows],
    )
    vectors.replace(ids, case.rows)
    assert np.array_equal(vectors.get(ids[::1000]), case.rows[::1000])
