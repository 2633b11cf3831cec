"""Hypotheses by rules, their joining in a search, and the intervals of what they give."""

import numpy as np
import pytest

from benches.quality import hyde, hyde_report
from benches.quality.datasets import Collection, Dataset, Memory, Question
from benches.quality.hyde import Measured, Row
from benches.quality.hyde_floors import Shares, Turn, limit_of, shares, turns_of
from benches.quality.hypotheses import MOST, Asked, asked_of, feedback, hypotheses
from benches.quality.statements import in_first_person, statement
from tests.support.embedders import WordEmbedder

PLAIN = Row("semantic", "", "plain")
WORSE, BETTER = Row("semantic", "statement", "kept"), Row("semantic", "invented", "kept")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did Caroline go to the support group?", "Caroline went to the support group."),
        ("What did Joanna share with her friends?", "Joanna shared with her friends."),
        ("Which exercises does Nadia do for her leg?", "Nadia does exercises for her leg."),
        ("When is Caroline going to the conference?", "Caroline is going to the conference."),
        ("Who went to the lake?", "Someone went to the lake."),
        ("Did magnesium help Nadia sleep?", "Magnesium helped Nadia sleep."),
        ("Can you remind me what Emil eats?", "Something Emil eats."),
        ("How often does the bike need an inspection?", "The bike needs an inspection."),
        ("What kind of yoga has Maria practiced?", "Maria has practiced yoga."),
        ("What did the speech therapist say about Emil?", "The speech therapist said about Emil."),
        ("pesto cashews trattoria", "Pesto cashews trattoria."),
        ("¿Cuándo fue la operación?", "Fue la operación."),
        ("Wie viel Bargeld brauchen wir am Tag?", "Bargeld brauchen wir am Tag."),
        ("?", "?"),
    ],
)
def test_a_question_becomes_a_statement(question, expected):
    assert statement(question) == expected


def test_a_detail_is_invented_where_one_is_asked_for():
    assert statement("When did Nate win?", invents=True) == "Nate won last week."
    assert statement("What did Nate win?", invents=True) == "Nate won."


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What does Nate like?", "What do I like?"),
        ("When is Nate's birthday?", "When is my birthday?"),
        ("What did Nate and Joanna see?", "What did we see?"),
        ("Where is the bike?", "Where is the bike?"),
        ("bike shop", "bike shop"),
    ],
)
def test_a_question_about_a_person_becomes_one_of_that_person(question, expected):
    assert in_first_person(question) == expected


def asked(**fields):
    none = {"before": (), "turns": (), "found": {}, "answer": None}
    return Asked(**({"text": "Who swims?"} | none | fields))


def test_feedback_takes_the_first_sentence_of_each_memory_before_the_second():
    first, second = "We swam in the lake. It was quite cold there. Brr!", "Emil has a new boat."
    assert feedback([first, second]) == [
        "We swam in the lake.",
        "Emil has a new boat.",
        "It was quite cold there.",
    ]


def test_a_memory_of_short_sentences_is_one_hypothesis():
    assert feedback(["Hi! Sure."]) == ["Hi! Sure."]


def test_generators_join_without_repetitions_up_to_the_engine_s_count():
    found = {"hybrid": [f"Someone swims in lake {at}." for at in range(20)]}
    texts = hypotheses("statement + statement + hybrid 20", asked(found=found))
    assert texts[:2] == ["Someone swims.", "Someone swims in lake 0."]
    assert len(texts) == MOST


def test_generators_without_material_give_nothing():
    names = ("questions before", "turns before", "true answer")
    assert [hypotheses(name, asked()) for name in names] == [[], [], []]


def test_a_window_ends_with_the_question():
    (text,) = hypotheses("questions before", asked(before=("A?", "B?")))
    assert text == "user: A?\nuser: B?\nuser: Who swims?"


def collection(name="c", **fields):
    texts = ["The kite is red.", "Tea is ready.", "The boat sank."]
    memories = [Memory(id=str(at), content=text, **fields) for at, text in enumerate(texts)]
    questions = [
        Question(id="k-q1", text="kite", kind="k", grades={"0": 1}),
        Question(id="k-q2", text="kite", kind="k", grades={"2": 1}),
    ]
    return Collection(name=name, memories=memories, questions=questions)


def test_turns_before_are_those_of_conversations_alone():
    assert asked_of(collection(), 1, {}, {}).turns == ()
    spoken = asked_of(collection(session_id="1"), 1, {}, {"k-q2": "the boat"})
    assert (spoken.turns[-1], spoken.before, spoken.answer) == (
        "The boat sank.",
        ("kite",),
        "the boat",
    )


@pytest.fixture(autouse=True)
def _word_vectors(monkeypatch):
    monkeypatch.setattr(hyde, "minilm", WordEmbedder)


@pytest.fixture
def door():
    opened = hyde.Door(collection())
    yield opened
    opened.close()


def near(door, mode):
    """Return the memories that a search for a kite with a hypothesis of a boat is near to."""
    search = door.search(Row("semantic", "statement", mode), "kite", ["boat"])
    return sorted(name for name, _, cosine in door.find(search) if cosine > 0.4)


def test_a_kept_question_and_its_hypotheses_find_by_the_best_vector(door):
    assert near(door, "kept") == ["0", "2"]
    assert near(door, "alone") == ["2"]
    assert near(door, "blend") == ["0"]


def test_figures_are_those_of_the_ranking():
    question = Question(id="q", text="", kind="k", grades={"a": 2, "b": 2, "c": 1})
    ranking = ["x", "a", "y", "z", "w", "b", "c"]
    assert hyde.figures_of(ranking, question, 2) == (0.5, 1.0, 0.5)
    assert hyde.figures_of(["x"], question, 2) == (0.0, 0.0, 0.0)


def test_a_set_is_measured_by_every_row(monkeypatch):
    monkeypatch.setattr(hyde, "ROWS", [PLAIN, Row("semantic", "true answer", "alone")])
    dataset = Dataset(name="s", sha256="0", relevant_from=1, collections=[collection()])
    found = hyde.measured(dataset, {"k-q2": "the boat"}, None)
    assert found.groups == ["k", "k"]
    assert found.figures[PLAIN][:, 2].tolist() == [1.0, 0.5]
    assert found.figures[Row("semantic", "true answer", "alone")][1, 2] == 1.0


def measured(name, groups, worse, better):
    shape = (len(groups), 3)
    return Measured(
        name,
        groups,
        ["k"] * len(groups),
        {
            PLAIN: np.full(shape, 0.5),
            WORSE: np.full(shape, 0.5) + np.array(worse)[:, None],
            BETTER: np.full(shape, 0.5) + np.array(better)[:, None],
        },
    )


def test_an_interval_of_equal_values_is_the_value_and_groups_are_drawn_whole():
    assert hyde_report.interval(np.ones(5), np.arange(5)) == (1.0, 1.0)
    values = np.array([0.0] * 50 + [1.0] * 50)
    by_question = hyde_report.interval(values, np.arange(100))
    by_group = hyde_report.interval(values, np.repeat([0, 1], 50))
    assert by_group == (0.0, 1.0)
    assert 0.35 < by_question[0] < 0.5 < by_question[1] < 0.65


def test_a_set_left_out_is_measured_by_the_choice_of_the_others():
    sets = [
        measured("one", ["a", "b"], worse=[0.1, 0.1], better=[-0.1, -0.1]),
        measured("two", ["c", "d"], worse=[-0.1, -0.1], better=[0.3, 0.3]),
    ]
    text = hyde_report.render(sets, [PLAIN, WORSE, BETTER])
    assert "chosen with all sets: invented, kept" in text
    assert "| one | invented, kept | -10.0 (-10.0 to -10.0) |" in text
    assert "| two | statement, kept | -10.0 (-10.0 to -10.0) |" in text


def test_a_conversation_left_out_has_no_say_in_its_own_choice():
    only = measured("one", ["a", "b"], worse=[0.2, -0.1], better=[-0.1, 0.2])
    points, _ = hyde_report._each_group_left_out(
        only,
        {"one": np.stack([hyde_report._gain(only, row) for row in (PLAIN, WORSE, BETTER)])},
    )
    assert points.tolist() == pytest.approx([-10.0, -10.0])


def turn(*cosines, right=(), relevant=1):
    return Turn([(at in right, cosine) for at, cosine in enumerate(cosines)], relevant)


def test_floors_keep_what_reaches_both():
    found = turn(0.6, 0.5, 0.3, right={1})
    assert found.kept(-1.0, 2.0) == [False, True, False]
    assert found.kept(0.5, 2.0) == [False, True]
    assert found.kept(-1.0, 0.05) == [False]
    assert turn().kept(0.5, 0.1) == []


def test_shares_are_of_what_a_floor_keeps():
    good = [turn(0.6, 0.3, right={0}), turn(0.4, 0.2, right={1}, relevant=2)]
    strange = [turn(0.3, 0.1), turn(0.1)]
    assert shares(good, strange, (-1.0, 2.0)) == (0.75, 0.5, 2.0, 1.5, 0.0)
    assert shares(good, strange, (0.3, 2.0)) == (0.5, pytest.approx(1 / 3), 1.5, 0.5, 0.5)


def test_the_limit_is_the_strictest_floor_that_loses_a_point_at_most():
    rows = [Shares(recall, 0, 0, 0, 0) for recall in (0.8, 0.8, 0.791, 0.78)]
    assert limit_of(rows) == 2


def test_turns_without_answers_have_no_row_of_true_answers():
    dataset = Dataset(name="s", sha256="0", relevant_from=1, collections=[collection()])
    turns = turns_of(dataset, {}, ["tea"], None)
    assert [len(good) for good, _ in turns.values()] == [2, 2, 0]
    assert [len(strange) for _, strange in turns.values()] == [1, 1, 1]
    assert turns[""][0][0].found[0][1] == pytest.approx(0.5)
