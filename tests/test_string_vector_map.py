"""Vectors by string: as the map of numbers, with strings for its ids."""

import copy
import pickle
import threading

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mnemic import StringVectorMap, VectorMap, errors
from mnemic.vectors import StringHits, StringRangeHits
from tests.support.file_formats import STRING_VECTOR_MAP, kept_rows, kept_string_map
from tests.support.threads import run_together
from tests.support.tiers import examples
from tests.support.vector_files import rows_of


def pickled(vectors, number=None):
    return pickle.loads(pickle.dumps(vectors, number))  # noqa: S301 - our own


@pytest.fixture
def small():
    vectors = StringVectorMap(2)
    vectors.upsert(["one", "two", "three"], [[1, 0], [0, 1], [1, 1]])
    return vectors


def test_a_search_answers_with_strings(small):
    ids, scores = hits = small.search([1, 0], k=2)
    assert isinstance(hits, StringHits)
    assert ids.tolist() == ["one", "three"]
    assert ids.dtype == object
    assert scores.tolist() == [1.0, pytest.approx(2**-0.5)]
    assert hits.counts is None
    assert hits.mask.tolist() == [True, True]
    assert small.search([1, 0], k=5, allow=["two", "three", "absent"]).ids.tolist() == [
        "three",
        "two",
    ]
    assert small.search([1, 0], allow="two").ids.tolist() == ["two"]
    assert small.search([1, 0], allow=[]).ids.shape == (0,)
    assert small.search([1, 0], k=1, prior={"two": 3.0, "absent": 9.0}).ids.tolist() == ["two"]
    assert small.search([[1, 0], [0, 1]], combine="max", k=2).ids.tolist() == ["one", "two"]


def test_a_batch_is_padded_with_none(small):
    hits = small.search([[1, 0], [-1, 0]], k=4, min_score=0.0)
    assert hits.ids.tolist() == [["one", "three", "two", None], ["two", None, None, None]]
    assert hits.counts.tolist() == hits.mask.sum(axis=1).tolist() == [3, 1]
    assert np.isneginf(hits.scores[~hits.mask]).all()
    assert hits.ids[hits.mask].tolist() == ["one", "three", "two", "two"]
    assert small.search(np.empty((0, 2)), k=3).ids.shape == (0, 3)


def test_hits_are_true_if_there_are_any_and_shown_on_one_line(small):
    assert small.search([1, 0])
    assert not small.search([1, 0], k=0)
    assert small.search([[1, 0]])
    assert not small.search([[1, 0]], min_score=2.0)
    assert repr(small.search([1, 0], k=1)) == "StringHits(1 hit, {'one': 1.000})"
    assert repr(small.search([[1, 0]], k=7)) == "StringHits(1 queries, k=7)"
    for read in (len, lambda answer: answer[0]):
        with pytest.raises(TypeError):
            read(small.search([1, 0]))
    small.upsert(["a name of several words"], [[1, 0]])
    assert "several" not in repr(small.search([1, 0]))
    many = StringVectorMap.from_rows([f"n{at}" for at in range(9)], np.ones((9, 2)))
    assert repr(many.search([1, 1])).endswith("'n4': 1.000, …})")


def test_a_range_search_has_limits(small):
    limits, ids, scores = hits = small.range_search([[1, 0], [0, 1], [-1, -1]], min_score=0.5)
    assert isinstance(hits, StringRangeHits)
    assert limits.tolist() == [0, 2, 4, 4]
    assert ids.tolist() == ["one", "three", "two", "three"]
    assert scores.shape == (4,)
    assert repr(hits) == "StringRangeHits(3 queries, 4 hits)"
    assert small.range_search([1, 0], min_score=-9.0, allow=["two"]).ids.tolist() == ["two"]


def test_counts_rows_and_ids_are_those_of_strings(small):
    assert small.count([1, 0], min_score=0.5) == 2
    assert small.count([[1, 0], [0, 1]], min_score=0.5, allow=["one"]).tolist() == [1, 0]
    assert small.get("two").tolist() == [0, 1]
    assert small.get("absent") is None
    assert small.get(["two", "one", "two"]).tolist() == [[0, 1], [1, 0], [0, 1]]
    assert small.get([]).shape == (0, 2)
    assert "one" in small
    assert "absent" not in small
    assert 0 not in small
    assert small.ids() == ["one", "two", "three"]
    assert (len(small), small.dim, small.metric) == (3, 2, "cosine")
    assert small.nbytes > 0
    assert repr(small) == "<StringVectorMap dim=2 metric=cosine rows=3>"
    small.flush()


def test_ids_are_any_strings_but_half_characters():
    ids = ["", " ", "ñ", "名前", "😀", "a\0b", "x" * 10_000, "-1", "None"]
    vectors = StringVectorMap.from_rows(ids, rows_of(len(ids), 4))
    assert vectors.ids() == pickled(vectors).ids() == ids
    array = StringVectorMap.from_rows(np.array(["a", "b"]), rows_of(2, 4))
    assert all(type(each) is str for each in array.ids())
    assert StringVectorMap.from_rows((each for each in "ab"), rows_of(2, 4)).ids() == ["a", "b"]
    with pytest.raises(errors.InvalidArgumentError):
        vectors.upsert(["\ud800"], rows_of(1, 4))
    assert len(vectors) == len(ids)


@pytest.mark.parametrize("name", ["upsert", "replace"])
def test_a_refused_change_changes_nothing(small, name):
    change, before = getattr(small, name), small.ids()
    refused = [
        (["new"], [[1, np.nan]], errors.NonFiniteVectorError),
        (["new", "one"], [[1, 0]], errors.CountMismatchError),
        (["new"], [[1, 0, 0]], errors.DimensionMismatchError),
        (["new", "new"], [[1, 0]] * 2, errors.DuplicateIdError),
        (["new", 3], [[1, 0]] * 2, errors.ArrayTypeError),
        ([None], [[1, 0]], errors.ArrayTypeError),
        (b"new", [[1, 0]], errors.ArrayTypeError),
        (3, [[1, 0]], errors.ArrayTypeError),
        (["new"], "text", errors.ArrayTypeError),
    ]
    for ids, vectors, error in refused:
        with pytest.raises(error):
            change(ids, vectors)
        assert small.ids() == before
        assert "new" not in small
        assert small.search([1, 0]).ids.tolist() == ["one", "three", "two"]
    assert set(small._numbers) == set(before)


def test_wrong_arguments_are_refused_with_typed_errors(small):
    for wrong in (3, [3], [None], [b"one"], 1.5, [["one"]]):
        for call in (small.remove, small.get, lambda ids: small.search([1, 0], allow=ids)):
            with pytest.raises(errors.ArrayTypeError):
                call(wrong)
    with pytest.raises(errors.UnknownIdError, match="'absent'"):
        small.get(["one", "absent"])
    for prior in ({"one": "x"}, {3: 1.0}, "one", 3, [("one", 1.0)]):
        with pytest.raises(errors.ArrayTypeError):
            small.search([1, 0], prior=prior)
    with pytest.raises(errors.NonFiniteVectorError):
        small.count([1, 0], min_score=0.0, prior={"absent": np.nan})
    with pytest.raises(errors.InvalidArgumentError):
        StringVectorMap(0)
    with pytest.raises(errors.InvalidArgumentError):
        StringVectorMap(2, metric="l2")
    with pytest.raises(errors.DuplicateIdError) as told:
        small.upsert(["some long text"] * 2, [[1, 0]] * 2)
    assert "long" not in str(told.value)


def test_a_map_comes_back_from_a_file_with_its_ids(small, tmp_path):
    small.remove(["one"])
    small.upsert(["名", "one"], [[3, 4], [1, 2]])
    small.save(tmp_path / "map")
    again = StringVectorMap.load(tmp_path / "map")
    for query in ([1, 0], [[1, 0], [0, 1]]):
        (ids, scores), (own_ids, own_scores) = again.search(query), small.search(query)
        assert (ids.tolist(), scores.tolist()) == (own_ids.tolist(), own_scores.tolist())
    assert again.ids() == small.ids()
    again.upsert(["five"], [[0, 1]])
    assert again.get("five").tolist() == [0, 1]
    assert "five" not in StringVectorMap.load(tmp_path / "map")
    again.save(tmp_path / "map")
    assert StringVectorMap.load(tmp_path / "map").ids() == again.ids()
    numbers = VectorMap.load(tmp_path / "map")
    assert len(numbers) == len(again)
    StringVectorMap(3, metric="inner_product").save(tmp_path / "map")
    empty = StringVectorMap.load(tmp_path / "map")
    assert (len(empty), empty.dim, empty.metric) == (0, 3, "inner_product")


def test_a_file_that_an_earlier_version_wrote_answers_as_it_did():
    vectors, made = StringVectorMap.load(STRING_VECTOR_MAP), kept_string_map()
    assert vectors.ids() == made.ids()
    assert np.array_equal(vectors.get(vectors.ids()), made.get(made.ids()))
    hits = vectors.search(kept_rows(1, 5)[0], k=3)
    assert hits.ids.tolist() == ["ñ 0", "ñ 16", "ñ 1"]
    assert hits.scores.tolist() == [0.9999999710435268, 0.9799145570008072, 0.9740783161181628]


def test_pickles_and_copies_have_the_same_answers_and_lives_of_their_own(small):
    made = [pickled(small, number) for number in range(2, 6)]
    for each in (*made, copy.copy(small), copy.deepcopy(small), pickled(StringVectorMap(2))):
        if len(each):
            assert each.ids() == small.ids()
            assert each.search([1, 2]).scores.tolist() == small.search([1, 2]).scores.tolist()
        each.upsert(["of its own"], [[1, 0]])
        assert "of its own" not in small
    hits = pickled(small.search([1, 0]))
    assert hits.ids.tolist() == ["one", "three", "two"]


def label(*parts):
    return msgspec.msgpack.encode(["mnemic.ids", *parts])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        label(),
        label(1),
        label(2, ["a", "b"]),
        label(1, ["a"]),
        label(1, ["a", "a"]),
        label(1, ["a", "b", "c"]),
        label(1, ["a", 3]),
        label(1, [b"a", b"b"]),
        label("1", ["a", "b"]),
        msgspec.msgpack.encode(["other", 1, ["a", "b"]]),
        label(1, ["a", "b"])[:-1],
        label(1, ["a", "b"]).replace(b"b", b"\xff"),
        label(1, ["a", "b"]) + b"x",
    ],
)
def test_files_whose_label_has_not_the_ids_are_refused(content, tmp_path):
    VectorMap.from_rows([0, 1], [[1, 0], [0, 1]]).save(tmp_path / "map", label=content)
    with pytest.raises(errors.VectorFileDamagedError):
        StringVectorMap.load(tmp_path / "map")


@pytest.mark.parametrize("ids", [[-5, 1], [-2, -3], [0, 2**63 - 1]])
def test_files_with_numbers_that_no_strings_have_are_refused(ids, tmp_path):
    good = label(1, ["a", "b"])
    VectorMap.from_rows(ids, [[1, 0], [0, 1]]).save(tmp_path / "map", label=good)
    with pytest.raises(errors.VectorFileDamagedError):
        StringVectorMap.load(tmp_path / "map")
    with pytest.raises(errors.VectorFileError):
        StringVectorMap.load(tmp_path / "absent")
    with pytest.raises(errors.VectorFileError):
        StringVectorMap(2).save(tmp_path / "absent" / "map")


class Changes(RuleBasedStateMachine):
    """A map of strings beside a dict."""

    ids = st.lists(st.sampled_from([f"id {at}" for at in range(30)]), max_size=12, unique=True)

    @initialize()
    def begin(self):
        self.vectors, self.rows = StringVectorMap(3, metric="inner_product"), {}

    def _rows(self, ids, seed):
        return np.random.default_rng(seed).integers(-3, 4, (len(ids), 3)).astype(np.float32)

    @rule(ids=ids, seed=st.integers(0, 99))
    def upsert(self, ids, seed):
        self.vectors.upsert(ids, self._rows(ids, seed))
        self.rows |= dict(zip(ids, self._rows(ids, seed), strict=True))

    @rule(ids=ids, seed=st.integers(0, 99))
    def replace(self, ids, seed):
        self.vectors.replace(ids, self._rows(ids, seed))
        kept = [each for each in self.rows if each in ids]
        new = dict(zip(ids, self._rows(ids, seed), strict=True))
        self.rows = {each: new[each] for each in [*kept, *ids]}

    @rule(ids=ids)
    def remove(self, ids):
        removed = [self.rows.pop(each, None) is not None for each in ids]
        assert self.vectors.remove(ids) == sum(removed)

    @rule()
    def copied(self):
        self.vectors = pickled(self.vectors)

    @rule(ids=ids, seed=st.integers(0, 99))
    def refused(self, ids, seed):
        with pytest.raises(errors.CountMismatchError):
            self.vectors.upsert(ids, self._rows([*ids, "more"], seed))

    @invariant()
    def answers_agree(self):
        query = np.array([1, 2, -1], np.float32)
        order = list(self.rows)
        assert self.vectors.ids() == order
        scores = {each: float(row @ query) for each, row in self.rows.items()}
        best = sorted(order, key=lambda each: -scores[each])  # ties in the order of coming
        hits = self.vectors.search(query, k=40)
        assert hits.ids.tolist() == best
        assert hits.scores.tolist() == [scores[each] for each in best]
        few = best[::3]
        assert self.vectors.search(query, k=40, allow=[*few, "x"]).ids.tolist() == few
        assert self.vectors.get(few).tolist() == [self.rows[each].tolist() for each in few]
        assert len(self.vectors._numbers) == len(self.vectors._ids) - 1 == len(order)


TestChanges = Changes.TestCase
TestChanges.settings = examples(40, stateful_step_count=15)


@examples(30)
@given(st.lists(st.text(), unique=True, max_size=20))
def test_any_strings_come_back_from_a_file(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("map") / "map"
    vectors = StringVectorMap.from_rows(ids, rows_of(len(ids), 3))
    vectors.save(path)
    assert StringVectorMap.load(path).ids() == ids


def test_threads_see_whole_changes_alone(tmp_path):
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    vectors = StringVectorMap(2, metric="inner_product")
    vectors.upsert(["fixed"], [[0, 1]])
    done = threading.Event()

    def write():
        try:
            for turn in range(400):
                pair = pairs[turn % 3]
                vectors.upsert(pair, [[turn + 1, 0]] * 2)
                vectors.remove(pairs[(turn + 2) % 3])
                if turn % 50 == 0:
                    vectors.save(tmp_path / "map")
        finally:
            done.set()

    def whole(hits):
        found = dict(zip(*map(np.ndarray.tolist, hits), strict=True))
        found.pop("fixed", None)
        for one, other in pairs:
            assert found.get(one) == found.get(other)

    def read():
        everything = [each for pair in pairs for each in pair]
        while not done.is_set():
            whole(vectors.search([1, 0], k=9))
            whole(vectors.search([1, 0], k=9, allow=everything))
            limits, *hits = vectors.range_search([1, 0], min_score=-1.0, allow=everything)
            whole(hits)
            assert limits.tolist() == [0, len(hits[0])]
            ids = set(vectors.ids())
            assert all((one in ids) == (other in ids) for one, other in pairs)
            assert len(pickled(vectors).ids()) % 2 == 1
            assert vectors.get(["fixed", "fixed"]).tolist() == [[0, 1], [0, 1]]

    run_together(write, read, read, read)
    assert len(StringVectorMap.load(tmp_path / "map")) % 2 == 1


def test_a_string_that_is_removed_and_stored_again_meanwhile_is_read_once_more(small, monkeypatch):
    found, calls = small._found, []

    def meanwhile(ids):
        numbers = found(ids)
        if ids == ["one", "two"] and len(calls) < 3:
            calls.append(ids)
            small.remove("one")
            small.upsert(["one"], [[len(calls), 0]])
        return numbers

    monkeypatch.setattr(small, "_found", meanwhile)
    assert small.search([1, 0], allow=["one", "two"]).ids.tolist() == ["one", "two"]
    assert small.get(["one", "two"]).tolist() == [[1, 0], [0, 1]]
    assert len(calls) == 3
    calls.clear()
    assert small.get(["one", "two"]).tolist() == [[1, 0], [0, 1]]
