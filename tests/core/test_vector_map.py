"""VectorMap from Python: shapes, dtypes, errors and kernels."""

import os
import subprocess
import sys

import numpy as np
import pytest

from mnemic import VectorMap, errors
from mnemic.errors import InvalidArgumentError
from mnemic.vectors import Hits, Selection, simd_kernel


def unit_rows(seed, count, dim):
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def small():
    vectors = VectorMap(2)
    vectors.replace([1, 2, 3], [[1, 0], [0, 1], [1, 1]])
    return vectors


@pytest.mark.requirement("R347", "T019", "T037")
def test_a_new_map_is_empty_and_answers_so():
    vectors = VectorMap(3)
    assert len(vectors) == 0
    assert 1 not in vectors
    assert vectors.get(1) is None
    hits = vectors.search([1, 0, 0])
    assert hits.ids.shape == hits.scores.shape == (0,)
    assert hits.counts is None


@pytest.mark.requirement("R340", "R341", "R350", "T038", "T039", "T040")
def test_replace_swaps_the_whole_content(small):
    small.replace([9], [[0, 1]])
    assert len(small) == 1
    assert 1 not in small
    assert 9 in small
    small.replace([], [])
    assert len(small) == 0


@pytest.mark.requirement("R342", "T017", "T018", "T041", "R401")
def test_hits_are_best_first_and_unpack(small):
    ids, scores = small.search([1, 0], k=2)
    assert ids.tolist() == [1, 3]
    assert ids.dtype == np.int64
    assert scores.dtype == np.float64
    assert scores[0] == 1.0
    assert scores[1] == pytest.approx(2**-0.5, abs=1e-7)
    assert isinstance(small.search([1, 0]), Hits)


def test_hits_are_arrays_and_their_errors_name_them(small):
    hits, none = small.search([1, 0], k=2), small.search([1, 0], min_score=2.0)
    for read in (len, lambda answer: answer[0], lambda answer: answer[:1]):
        for answer in (hits, none, small.search([[1, 0]])):
            with pytest.raises(TypeError, match=r"zip\(hits\.ids, hits\.scores\)"):
                read(answer)
    assert next(zip(hits.ids, hits.scores, strict=True)) == (1, 1.0)
    assert hits
    assert not none
    assert small.search([[1, 0], [0, 1]])
    assert not small.search([[1, 0]], min_score=2.0)


def test_hits_are_shown_on_one_line(small):
    many = VectorMap(2)
    many.replace(range(1_000), np.ones((1_000, 2), np.float32))
    assert repr(many.search([1, 1], k=1_000)).endswith(" 4: 1.000, …})")
    assert repr(many.search([1, 1], k=1_000)).startswith("Hits(1000 hits, {0: 1.000, ")
    assert repr(small.search([1, 0], k=0)) == "Hits(0 hits, {})"
    assert repr(small.search([[1, 0], [0, 1]], k=7)) == "Hits(2 queries, k=7)"


def test_one_id_with_one_vector_needs_no_nesting():
    vectors = VectorMap(3)
    vectors.upsert(7, [0, 0, 2])
    assert vectors.get(7).tolist() == [0, 0, 1]


def test_a_padding_is_no_id_and_every_other_negative_number_may_be_one():
    vectors = VectorMap(2)
    lowest = -(2**63)
    vectors.upsert([-2, lowest, 7], [[1, 0], [1, 0], [0, 1]])
    hits = vectors.search([[1, 0], [0, 1]], k=4, min_score=0.5)
    assert hits.ids.tolist() == [[lowest, -2, -1, -1], [7, -1, -1, -1]]
    assert (hits.ids != -1).sum(axis=1).tolist() == hits.counts.tolist() == [2, 1]
    assert -1 not in vectors
    assert vectors.remove([-1]) == 0
    assert vectors.search(np.empty((0, 2)), k=4).ids.shape == (0, 4)


def test_allow_limits_by_array_and_by_selection(small):
    selection = small.select([3, 2, 2, 77])
    assert isinstance(selection, Selection)
    assert selection.ids.tolist() == [2, 3, 77]
    assert len(selection) == 3
    for allow in (selection, [3, 2, 77], np.array([2, 3], np.int32)):
        assert small.search([1, 0], allow=allow).ids.tolist() == [3, 2]
    assert small.search([1, 0], allow=[]).ids.tolist() == []


def test_a_selection_follows_the_map(small):
    selection = small.select([1, 2, 50])
    assert small.search([1, 0], allow=selection).ids.tolist() == [1, 2]
    small.upsert([50], [[1, 0]])
    small.remove([1])
    assert small.search([1, 0], allow=selection).ids.tolist() == [50, 2]
    other = VectorMap(2)
    other.upsert([2], [[1, 0]])
    assert other.search([1, 0], allow=selection).ids.tolist() == [2]


def test_overwriting_replaces_the_row_and_removing_counts(small):
    small.upsert([1], [[0, 1]])
    assert len(small) == 3
    assert small.get(1).tolist() == [0, 1]
    assert small.remove([1, 1, 44]) == 1
    assert small.remove(3) == 1
    assert len(small) == 1


def test_get_returns_rows_in_the_order_asked(small):
    assert small.get([2, 1]).tolist() == [[0, 1], [1, 0]]
    assert small.get([]).shape == (0, 2)
    with pytest.raises(errors.UnknownIdError, match="id 7 is not in this map of 3 rows"):
        small.get([1, 7])


@pytest.mark.requirement("R345", "T016")
def test_cosine_scales_and_keeps_zero_and_unit_rows():
    vectors = VectorMap(2)
    given_rows = np.array([[3, 4], [0, 0], [1, 0]], np.float32)
    vectors.upsert([1, 2, 3], given_rows)
    assert vectors.get([1, 2, 3]).tolist() == [[np.float32(0.6), np.float32(0.8)], [0, 0], [1, 0]]
    assert given_rows[0].tolist() == [3, 4]
    stored = VectorMap(64)
    rows = unit_rows(3, 20, 64)
    stored.upsert(range(20), rows)
    assert np.array_equal(stored.get(range(20)), rows)


@pytest.mark.requirement("R402", "C124")
@pytest.mark.parametrize("scale", [1e-38, 1e-44, 1e38])
def test_tiny_and_huge_vectors_get_unit_length_too(scale):
    vectors = VectorMap(2)
    vectors.upsert(0, np.array([3, 4], np.float64) * scale / 4)
    assert np.linalg.norm(vectors.get(0).astype(np.float64)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint64])
def test_other_dtypes_and_layouts_are_converted(dtype):
    rows = np.array([[1, 0, 9], [2, 1, 9]], dtype)[:, :2]
    for array in (rows, np.asfortranarray(rows), rows.tolist()):
        vectors = VectorMap(2, metric="inner_product")
        vectors.upsert(np.array([1, 2], np.uint8), array)
        assert vectors.get([1, 2]).tolist() == [[1, 0], [2, 1]]
        assert vectors.search(array[0]).ids.tolist() == [2, 1]
    strided = np.array([1, 9, 0, 9], dtype)[::2]
    assert vectors.search(strided).ids.tolist() == [2, 1]


BAD_INPUT = [
    (lambda v: v.upsert([1], [[1, 2, 3]]), errors.DimensionMismatchError, "3 components"),
    (lambda v: v.upsert([1], [1, 2, 3]), errors.DimensionMismatchError, "3 components"),
    (lambda v: v.upsert([1], [[[1, 2]]]), errors.ArrayTypeError, "3 axes"),
    (lambda v: v.upsert([1, 2], [[1, 2]]), errors.CountMismatchError, "2 ids .* 1 vectors"),
    (lambda v: v.upsert([4, 4], [[1, 2], [3, 4]]), errors.DuplicateIdError, "id 4"),
    (lambda v: v.replace([4, 4], [[1, 2], [3, 4]]), errors.DuplicateIdError, "id 4"),
    (lambda v: v.upsert([7, 8], [[1, 2], [np.nan, 0]]), errors.NonFiniteVectorError, "row 1"),
    (lambda v: v.upsert([7], [[np.inf, 0]]), errors.NonFiniteVectorError, "row 0"),
    (lambda v: v.upsert([7], [[1e300, 0]]), errors.NonFiniteVectorError, "row 0"),
    (lambda v: v.replace([7], [[0, -np.inf]]), errors.NonFiniteVectorError, "row 0"),
    (lambda v: v.upsert(["a"], [[1, 2]]), errors.ArrayTypeError, "whole numbers"),
    (lambda v: v.upsert([1.5], [[1, 2]]), errors.ArrayTypeError, "whole numbers"),
    (lambda v: v.upsert([[1]], [[1, 2]]), errors.ArrayTypeError, "one axis"),
    (lambda v: v.upsert([2**63], [[1, 2]]), InvalidArgumentError, "int64"),
    (lambda v: v.upsert([4, -1], [[1, 2], [3, 4]]), InvalidArgumentError, "id -1 marks"),
    (lambda v: v.replace(-1, [1, 2]), InvalidArgumentError, "id -1 marks"),
    (lambda v: v.upsert([1], [["a", "b"]]), errors.ArrayTypeError, "numbers"),
    (lambda v: v.upsert([1], [[1j, 2]]), errors.ArrayTypeError, "numbers"),
    (lambda v: v.upsert([1], [[1, 2], [3]]), errors.ArrayTypeError, "array"),
    (lambda v: v.upsert([1], None), errors.ArrayTypeError, "numbers"),
    (lambda v: v.search([1, 2, 3]), errors.DimensionMismatchError, "3 components"),
    (lambda v: v.search([np.nan, 0]), errors.NonFiniteVectorError, "query"),
    (lambda v: v.search([1, 0], k=-1), InvalidArgumentError, "k must .*found -1"),
    (lambda v: v.search([1, 0], min_score=np.nan), InvalidArgumentError, "min_score .*NaN"),
    (lambda v: v.search([1, 0], allow=["a"]), errors.ArrayTypeError, "whole numbers"),
    (lambda v: v.search([[1, 0]], k=2**40), InvalidArgumentError, "batch"),
    (lambda v: v.search([1, 0], threads=0), InvalidArgumentError, "threads must .*found 0"),
    (lambda v: v.search([1, 0], threads=-2), InvalidArgumentError, "threads must .*found -2"),
    (lambda v: v.search([1, 0], combine="min"), InvalidArgumentError, "combine must .*'?min'?"),
    (lambda v: v.search([1, 0], weight=-1), InvalidArgumentError, "weight must .*found -1"),
    (lambda v: v.search([1, 0], weight=np.nan), InvalidArgumentError, "weight must .*found NaN"),
    (lambda v: v.search([1, 0], weight=np.inf), InvalidArgumentError, "weight must .*found inf"),
    (
        lambda v: v.search([1, 0], weight=1.1e30),
        InvalidArgumentError,
        "weight must .*from 0 to 1e30",
    ),
    (lambda v: v.count([1, 0], min_score=np.nan), InvalidArgumentError, "min_score .*NaN"),
    (
        lambda v: v.count([1, 0], min_score=0, weight=-1),
        InvalidArgumentError,
        "weight must .*found -1",
    ),
    (lambda v: v.count([1, 0], min_score=0, allow=["a"]), errors.ArrayTypeError, "whole numbers"),
    (lambda v: v.count([1, 0, 0], min_score=0), errors.DimensionMismatchError, "3 components"),
    (lambda v: v.count([np.inf, 0], min_score=0), errors.NonFiniteVectorError, "query"),
    (lambda v: v.prior([1, 2], [1]), errors.CountMismatchError, "2 ids .* 1"),
    (lambda v: v.prior([1, 2], [1, np.nan]), errors.NonFiniteVectorError, "row 1 of the prior"),
    (lambda v: v.prior([1], [-np.inf]), errors.NonFiniteVectorError, "row 0 of the prior"),
    (lambda v: v.prior([1], [1e300]), errors.NonFiniteVectorError, "row 0 of the prior"),
    (lambda v: v.prior([4, 1, 4], [1, 2, 3]), errors.DuplicateIdError, "id 4"),
    (lambda v: v.prior(["a"], [1]), errors.ArrayTypeError, "whole numbers"),
    (lambda v: v.prior([1], ["a"]), errors.ArrayTypeError, "numbers"),
]


@pytest.mark.requirement("R349", "T015")
@pytest.mark.parametrize(("call", "error", "message"), BAD_INPUT)
def test_bad_input_raises_what_it_is_and_changes_nothing(small, call, error, message):
    before = small.get([1, 2, 3]).tolist()
    with pytest.raises(error, match=message):
        call(small)
    assert len(small) == 3
    assert small.get([1, 2, 3]).tolist() == before


@pytest.mark.parametrize("dim", [0, -1, 32_769])
def test_a_dimension_out_of_range_is_refused(dim):
    with pytest.raises(InvalidArgumentError, match="between 1 and 32768"):
        VectorMap(dim)


def test_an_unknown_metric_is_refused():
    with pytest.raises(InvalidArgumentError, match="euclid"):
        VectorMap(2, metric="euclid")


def test_every_error_is_a_mnemic_error_and_a_built_in_one():
    for error in (errors.DimensionMismatchError, errors.DuplicateIdError):
        assert issubclass(error, errors.MnemicError)
        assert issubclass(error, ValueError)
    assert issubclass(errors.ArrayTypeError, TypeError)
    assert issubclass(errors.UnknownIdError, KeyError)


def test_the_map_describes_itself(small):
    assert (small.dim, small.metric, len(small)) == (2, "cosine", 3)
    assert repr(small) == "<VectorMap dim=2 metric=cosine rows=3>"
    assert 1 in small
    assert "1" not in small
    assert "Selection of 2 ids" in repr(small.select([1, 2]))
    assert repr(small.search([1, 0], k=1)) == "Hits(1 hit, {1: 1.000})"


def test_the_coarse_copies_cost_less_than_two_fifths():
    rows = unit_rows(5, 20_000, 384)
    vectors = VectorMap(384)
    vectors.replace(range(20_000), rows)
    assert rows.nbytes < vectors.nbytes < 1.4 * rows.nbytes


def run_with_kernel(name, code):
    environment = {**os.environ, "MNEMIC_KERNEL": name}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_kernel_can_be_forced_and_a_wrong_one_is_refused():
    code = "import mnemic; print(mnemic.vectors.simd_kernel())"
    assert run_with_kernel("portable", code).stdout.strip() == "portable"
    refused = run_with_kernel("sse9", code)
    assert "KernelUnavailableError" in refused.stderr
    assert "sse9" in refused.stderr
    assert "portable" in refused.stderr
    refused = run_with_kernel("sse9", "import mnemic; mnemic.VectorMap(3)")
    assert "KernelUnavailableError" in refused.stderr


def test_all_kernels_give_the_same_bytes():
    code = """if True:
        import hashlib, numpy as np, mnemic
        rows = np.random.default_rng(0).standard_normal((3000, 100)).astype("f4")
        vectors = mnemic.VectorMap(100)
        vectors.replace(np.arange(3000), rows)
        hits = vectors.search(rows[:20] + 0.1, k=15)
        print(hashlib.sha256(hits.ids.tobytes() + hits.scores.tobytes()).hexdigest())
    """
    assert (
        run_with_kernel("portable", code).stdout
        == run_with_kernel(simd_kernel(), code).stdout
        != ""
    )


def test_sealing_sketches_rows_that_differ_in_few_directions_and_no_others():
    random = np.random.default_rng(5)
    inner, outer = random.standard_normal((8000, 20)), random.standard_normal((20, 256))
    few = (inner @ outer).astype(np.float32)
    many = random.standard_normal((8000, 256)).astype(np.float32)
    per_row = {}
    for name, rows in (("few", few), ("many", many)):
        vectors = VectorMap(256)
        vectors.replace(np.arange(8000), rows)
        vectors.flush()
        per_row[name] = vectors.nbytes / 8000
    assert 70 < per_row["few"] - per_row["many"] < 75
