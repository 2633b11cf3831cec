"""The choice of constants on some questions, and its effect on those that it did not see."""

import json

import msgspec
import numpy as np
import pytest

from benches.quality import choose, choosing, constants, sweep
from benches.quality.choosing import NOTHING, OBJECTIVES, LeftOut, Search, SeenSet
from benches.quality.methods.front_door import FrontDoor
from mnemic.errors import InvalidArgumentError
from mnemic.model import AdaptiveShare
from mnemic.model.ranking import HYBRID, KEYWORD
from tests.benches.test_quality_metrics import write_lines
from tests.support.embedders import WordEmbedder

WORDS = ["kite", "tea", "boat"]


class Table:
    """Figures that are a function of the point, and a count of the sets that were measured."""

    def __init__(self, functions, conversations=None, parts=None):
        self.functions = functions
        self.sets = {
            name: np.array((conversations or {}).get(name, ["c"] * len(of_questions)))
            for name, of_questions in functions.items()
        }
        self.parts_by_set = parts or {}
        self.asked = []

    def at(self, point, name):
        self.asked.append(name)
        return np.array([figure(*point) for figure in self.functions[name]])

    def parts(self, name):
        return self.parts_by_set.get(name, [])


def nearness(wanted):
    """A figure of merit that is best at this value."""
    return lambda value, *_: 1 - abs(value - wanted)


def search(*candidates, objective="mean", is_descent=False):
    return Search(candidates, OBJECTIVES[objective], is_descent)


def held_by_label(report):
    return {choosing.label(one.left): one for one in report.by_set + report.by_conversation}


def leave_out(candidates, table, **options):
    return choosing.leave_out(search(*candidates, **options), table, lambda _line: None)


def test_every_set_counts_alike_whatever_its_number_of_questions():
    table = Table({"large": [nearness(0)] * 9, "one": [nearness(1)], "two": [nearness(1)]})
    assert search((0.0, 0.5, 1.0)).best(table) == (1.0,)


def test_a_choice_does_not_see_the_set_or_the_conversation_left_out():
    table = Table(
        {"a": [nearness(0)] * 3, "b": [nearness(1), nearness(0.5), nearness(0.5)]},
        {"b": ["x", "y", "y"]},
    )
    grid = search((0.0, 0.5, 1.0))
    assert grid.best(table, LeftOut("a")) == (0.5,)
    assert grid.best(table, LeftOut("b")) == (0.0,)
    assert Search(((0.5, 1.0),), choosing.mean).best(table, LeftOut("a", "c")) == (0.5,)
    only_x = Table({"b": table.functions["b"]}, {"b": ["x", "y", "y"]})
    assert grid.best(only_x, LeftOut("b", "y")) == (1.0,)


def test_a_set_left_out_is_not_measured_before_the_choice():
    table = Table({"a": [nearness(0)], "b": [nearness(1)]})
    search((0.0, 1.0)).best(table, LeftOut("a"))
    assert set(table.asked) == {"b"}


@pytest.mark.parametrize("is_descent", [False, True])
def test_the_present_value_stays_where_another_is_no_better(is_descent):
    table = Table({"a": [lambda _one, two: 1 - abs(two - 3)]})
    found = search((0.2, 0.1, 0.3), (1, 2, 3), is_descent=is_descent).best(table)
    assert found == (0.2, 3)


def test_a_descent_changes_one_constant_at_a_time_until_none_gains():
    # The first constant gains only after the second has changed.
    def figure(one, two):
        return one * two - 0.1 * one + 0.2 * two

    table = Table({"a": [figure]})
    assert search((0, 1), (0, 1), is_descent=True).best(table) == (1, 1)


def test_a_descent_stays_where_a_grid_gains_by_two_changes_at_once():
    table = Table({"a": [lambda one, two: 1.0 if (one, two) == (1, 1) else -one - two]})
    assert search((0, 1), (0, 1), is_descent=True).best(table) == (0, 0)
    assert search((0, 1), (0, 1)).best(table) == (1, 1)


def seen(values, *parts):
    return SeenSet(np.array(values), np.array(values), [np.array(part) for part in parts])


def test_a_shortfall_is_that_to_the_best_part_beyond_one_standard_error():
    assert seen([0.2, 0.4], [0.5, 0.7], [0.1, 0.1]).shortfall() == pytest.approx(0.3)
    # Differences of 0 and 4: a mean of 2 with an error of 2.
    assert seen([0, 0], [0, 4]).shortfall() == 0
    assert seen([0.0], [0.5]).shortfall() == 0.5
    assert seen([0.5, 0.5], [0.1, 0.1]).shortfall() == 0
    assert seen([0.0]).shortfall() == 0


def test_regret_avoids_a_loss_to_a_part_before_it_looks_at_the_mean():
    functions = {"a": [lambda value: 1 - value] * 2, "b": [lambda value: 0.5 + 0.1 * value] * 2}
    table = Table(functions, parts={"b": [np.array([0.6, 0.6])]})
    assert search((0.0, 1.0)).best(table) == (0.0,)
    assert search((0.0, 1.0), objective="regret").best(table) == (1.0,)
    unguarded = Table(functions)
    assert search((0.0, 1.0), objective="regret").best(unguarded) == (0.0,)


def test_no_loss_gives_up_the_best_mean_where_a_set_loses_to_the_present():
    functions = {"a": [lambda value: value] * 2, "b": [lambda value: 0.5 - 0.1 * value**2] * 2}
    table = Table(functions)
    assert search((0.0, -1.0, 1.0)).best(table) == (1.0,)
    assert search((0.0, -1.0, 1.0), objective="no-loss").best(table) == (0.0,)
    # Without b nothing is lost.
    found = search((0.0, -1.0, 1.0), objective="no-loss").best(table, LeftOut("b"))
    assert found == (1.0,)


def test_a_loss_within_one_standard_error_is_none():
    assert choosing.loss(np.array([0.0, 0.0]), np.array([0.0, 4.0])) == 0
    assert choosing.loss(np.array([0.0, 0.0]), np.array([1.0, 1.0])) == 1
    assert choosing.loss(np.array([1.0]), np.array([0.0])) == 0


def test_the_effect_on_what_was_left_out_is_in_points_against_the_present_and_the_common_choice():
    table = Table({"a": [nearness(0)] * 2, "b": [nearness(1)], "c": [nearness(1)]})
    report = leave_out([(0.5, 0.0, 1.0)], table)
    assert (report.preset, report.chosen) == ((0.5,), (1.0,))
    assert report.gains["a"].tolist() == [-50, -50]
    held = held_by_label(report)
    assert held["a"].point == (1.0,)
    assert held["a"].against_preset.tolist() == [-50, -50]
    assert held["a"].against_all.tolist() == [0, 0]
    # Without b, one set wants 0 and one wants 1, so that the present stays.
    assert held["b"].point == (0.5,)
    assert held["b"].against_all.tolist() == [-50]


def test_conversations_are_left_out_within_their_set_and_pooled_over_it():
    table = Table(
        {"a": [nearness(0), nearness(0.1), nearness(1)], "b": [nearness(0.4)]},
        {"a": ["x", "x", "y"]},
    )
    report = leave_out([(0.4, 0.0, 1.0)], table)
    held = held_by_label(report)
    assert set(held) == {"a", "b", "a x", "a y"}
    pooled = choosing.pooled(report.by_conversation)
    assert list(pooled) == ["a"]
    assert len(pooled["a"].against_all) == 3
    expected = np.concatenate([held["a x"].against_preset, held["a y"].against_preset])
    assert pooled["a"].against_preset.tolist() == expected.tolist()


def test_a_single_set_is_left_out_by_its_conversations_alone():
    table = Table({"a": [nearness(0), nearness(1)]}, {"a": ["x", "y"]})
    assert set(held_by_label(leave_out([(0.0, 1.0)], table))) == {"a x", "a y"}


def test_the_most_lost_is_the_worst_mean_and_no_gain_is_a_loss():
    held = [
        choosing.Held(NOTHING, (), np.array([-4.0, 2.0]), np.array([3.0, 3.0])),
        choosing.Held(NOTHING, (), np.array([-3.0, 0.0]), np.array([1.0, 0.0])),
    ]
    text = choose.most_lost("set", held)
    assert "at most 1.5 points lost against the present, 0.0 against" in text
    assert "none" in choose.most_lost("set", [])


def test_every_constant_of_a_ranking_has_a_dotted_name():
    assert {"similarity.short", "similarity.long"} <= set(constants.names_of(HYBRID))
    made = msgspec.structs.replace(HYBRID, similarity=0.25)
    names = list(constants.names_of(made))
    assert {"similarity", "session.isolated", "keywords.exponent"} <= set(names)
    for name in names:
        made = constants.replaced(made, name, constants.value_of(KEYWORD, name))
    assert made == KEYWORD
    assert constants.as_text(made) == constants.as_text(KEYWORD) != constants.as_text(HYBRID)


def test_a_constant_at_any_depth_is_replaced_alone():
    class Inner(msgspec.Struct, frozen=True):
        weight: float = 1.0
        other: float = 2.0

    class Middle(msgspec.Struct, frozen=True):
        inner: Inner = Inner()

    class Outer(msgspec.Struct, frozen=True):
        middle: Middle = Middle()

    assert list(constants.names_of(Outer())) == ["middle.inner.weight", "middle.inner.other"]
    changed = constants.replaced(Outer(), "middle.inner.weight", 5)
    assert changed == Outer(Middle(Inner(5.0, 2.0)))


def test_a_group_of_constants_can_give_way_to_a_number(monkeypatch, folders, tmp_path):
    adaptive = constants.replaced(HYBRID, "similarity", AdaptiveShare())
    assert "similarity.long" in constants.names_of(adaptive)
    assert constants.replaced(adaptive, "similarity.long", 0.5).similarity == AdaptiveShare(
        long=0.5
    )

    def words():
        return FrontDoor("w", memory_options={"embedder": WordEmbedder()}, search_options={})

    monkeypatch.setitem(choose.PRESETS, "keyword", (adaptive, words))
    path = tmp_path / "record.json"
    store = ["--store", str(tmp_path / "figures.sqlite"), "--json", str(path)]
    choose.main([*folders, "--preset", "keyword", "--set", "similarity=.3", *store])
    present = json.loads(path.read_text(encoding="utf-8"))["present"]
    assert present == [msgspec.to_builtins(AdaptiveShare())]


def test_a_value_that_the_ranking_does_not_allow_is_refused():
    with pytest.raises(InvalidArgumentError):
        constants.replaced(HYBRID, "session.next", 2.0)


def test_candidates_are_json_values():
    read = constants.parse_candidates("session.next=.2,0.5,1,true,null")
    assert read == ("session.next", (0.2, 0.5, 1, True, None))
    for bad in ("session.next", "=1", "session.next=", "session.next=a"):
        with pytest.raises(ValueError, match=r".+"):
            constants.parse_candidates(bad)


@pytest.fixture
def folders(tmp_path):
    """Return two folders of two conversations, one question for every word."""
    made = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        keys = [(conv, word) for conv in ("x", "y") for word in WORDS]
        common = {"session": 1, "time": None, "caption": "", "speaker": None}
        turns = [
            {"conv": conv, "id": f"{conv}{word}", "pos": at, "text": f"{name} {word}."} | common
            for at, (conv, word) in enumerate(keys)
        ]
        questions = [
            {"conv": c, "id": f"{c}{w}q", "category": "k", "text": w, "evidence": [f"{c}{w}"]}
            for c, w in keys
        ]
        write_lines(folder / "turns.jsonl", turns)
        write_lines(folder / "questions.jsonl", questions)
        made.append(str(folder))
    return made


@pytest.fixture
def run(folders, tmp_path, capsys):
    def call(*more):
        path = tmp_path / "record.json"
        common = ["--preset", "keyword", "--store", str(tmp_path / "store" / "figures.sqlite")]
        choose.main([*folders, *common, "--json", str(path), *more])
        return capsys.readouterr().out, json.loads(path.read_text(encoding="utf-8"))

    return call


@pytest.mark.parametrize(
    "way", [(), ("--descent",), ("--objective", "regret"), ("--objective", "mean")]
)
def test_constants_are_chosen_over_folders_by_one_command(run, monkeypatch, way):
    if "regret" in way:
        monkeypatch.setattr(choose, "PARTS", ("mnemic-keyword",))
    text, record = run("--set", "session.next=0,.8", "--set", "keywords.words=.5", *way)
    assert record["names"] == ["session.next", "keywords.words"]
    assert record["present"] == [KEYWORD.session.next, KEYWORD.keywords.words]
    assert [one["set"] for one in record["by_set"]] == ["first", "second"]
    conversations = [(one["set"], one["conversation"]) for one in record["by_conversation"]]
    assert conversations == [("first", "x"), ("first", "y"), ("second", "x"), ("second", "y")]
    assert record["pooled"]["first"]["against_all"]["questions"] == 6
    assert "left-out set: at most 0.0 points lost" in text


def test_a_second_run_measures_nothing_again(run, monkeypatch):
    first = run("--set", "session.next=0,.8")
    monkeypatch.setattr(FrontDoor, "search", None)
    assert run("--set", "session.next=0,.8") == first
    # Other questions, and another package, are measured again.
    with pytest.raises(TypeError):
        run("--set", "session.next=0,.8", "--limit", "1")
    monkeypatch.setattr(sweep, "package_hash", lambda: "other")
    with pytest.raises(TypeError):
        run("--set", "session.next=0,.8")


def test_what_was_measured_before_an_interruption_is_kept(run, monkeypatch):
    searched, search_one = [], FrontDoor.search

    def fail_late(self, question, limit, **options):
        if len(searched) == 13:
            raise KeyboardInterrupt
        searched.append(question)
        return search_one(self, question, limit, **options)

    monkeypatch.setattr(FrontDoor, "search", fail_late)
    with pytest.raises(KeyboardInterrupt):
        run("--set", "session.next=0,.8")
    counted = []

    def count(self, question, limit, **options):
        counted.append(question)
        return search_one(self, question, limit, **options)

    monkeypatch.setattr(FrontDoor, "search", count)
    run("--set", "session.next=0,.8")
    # Three points of two sets of six questions, of which two sets were kept.
    assert len(counted) == 36 - 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "session.nxt=1"], "no constant 'session.nxt'; there are similarity"),
        (["--set", "session.next=3"], "next must be a number"),
        (["--set", "session.next"], "invalid parse_candidates value"),
        ([], "required: --set"),
    ],
)
def test_a_wrong_constant_is_refused_before_anything_is_read(capsys, arguments, message):
    with pytest.raises(SystemExit):
        choose.parse(["missing", *arguments])
    assert message in capsys.readouterr().err


def test_something_has_to_be_measured(capsys):
    with pytest.raises(SystemExit):
        choose.parse(["--set", "similarity.long=.2"])
    assert "at least one DIRECTORY" in capsys.readouterr().err
    assert [
        one.name for one in choose.datasets_of(choose.parse(["--own", "--set", "keywords.b=1"]))
    ]
