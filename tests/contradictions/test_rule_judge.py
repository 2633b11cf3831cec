import asyncio
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.support.hostile_texts import FAMILIES
from mnemic.contradictions import Judgement, RuleJudge
from mnemic.contradictions.lexicon import lexicon
from mnemic.contradictions.tokens import MAX_CHARACTERS
from tests.support.paths import ROOT
from tests.support.tiers import examples
from tests.support.work import lines_run

JUDGE = RuleJudge()


def judged(older, newer):
    return asyncio.run(JUDGE.judge(newer, [older]))[0]


def contradicts(older, newer):
    return judged(older, newer).confidence >= 0.5


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The shed has a lock.", "The shed has no lock."),
        ("Irma eats oysters.", "Irma never eats oysters."),
        ("The museum guide speaks Greek.", "The museum guide doesn't speak Greek."),
        ("User reads the digest.", "User no longer reads the digest."),
    ],
)
def test_a_statement_and_its_denial_contradict(older, newer):
    assert contradicts(older, newer)
    assert contradicts(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The pantry is locked.", "The pantry is unlocked."),
        ("Camping is allowed by the river.", "Camping is forbidden by the river."),
        ("Irma loves opera.", "Irma can't stand opera."),
        ("The quiz was easy.", "The quiz was difficult."),
        ("Irma is satisfied with the tiles.", "Irma is dissatisfied with the tiles."),
        ("The permit is pending.", "The permit was approved yesterday."),
        ("User prefers ferries to bridges.", "User prefers bridges to ferries."),
    ],
)
def test_opposites_contradict(older, newer):
    assert contradicts(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Irma lives in Bergamo.", "Irma moved to Ravenna."),
        ("The gate is painted green.", "The gate is painted red."),
        ("User's editor is Emacs.", "User's editor is Neovim."),
        ("The ledger is stored in MySQL.", "The ledger is stored in PostgreSQL."),
        ("My boss is Carla.", "My boss is named Stefan."),
        ("User lives in Bergamo.", "User moved to Ravenna."),
    ],
)
def test_another_value_of_one_attribute_contradicts(older, newer):
    assert contradicts(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Irma lives in Bergamo.", "Otto lives in Ravenna."),
        ("Irma: I never cycle to work.", "Otto: I always cycle to work."),
        ("The Lyon depot has 40 vans.", "The Nantes depot has 25 vans."),
        ("My aunt was born in 1950.", "My uncle was born in 1948."),
        ("The green folder is for receipts.", "The yellow folder is for drawings."),
        ("The plank is 2 m long.", "The plank is 20 cm wide."),
        ("In 2018 Irma lived in Bergamo.", "In 2022 Irma lived in Ravenna."),
        ("Irma used to live in Bergamo.", "Irma lives in Ravenna."),
        ("Is the pantry locked?", "The pantry is unlocked."),
        ("Irma likes tea.", "Irma likes coffee."),
        ("Irma speaks Greek.", "Irma speaks Danish."),
        ("Irma plans to move to Ravenna.", "Irma lives in Bergamo."),
        ("Irma has two sons.", "Irma has three cats."),
        ("Irma dislikes noisy cafés.", "Irma likes quiet cafés."),
    ],
)
def test_other_subjects_times_questions_plans_and_likes_do_not_contradict(older, newer):
    assert not contradicts(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The pantry is never open.", "The pantry is always closed."),
        ("Irma failed the exam.", "Irma did not pass the exam."),
        ("You may not smoke here.", "Smoking is forbidden here."),
    ],
)
def test_a_denied_opposite_is_a_paraphrase(older, newer):
    assert not contradicts(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Die Tür ist offen und Anna hat 3 Katzen", "Die Tür ist zu und Anna hat 4 Katzen"),
        ("Anna ist 30 Jahre alt und wohnt in Oslo", "Anna is 31 and lives in Oslo now"),
        ("The code is 4711", "Das Codewort für die Tür ist 4712"),
        ("猫は3匹います 3 cats", "猫は4匹います 4 cats"),
        ("Код: 4711", "Код: 4712"),
    ],
)
def test_texts_in_other_languages_are_not_judged(older, newer):
    assert judged(older, newer) == Judgement(0.0)


def test_a_few_latin_words_count_as_english():
    assert contradicts("Ticket 344 is open", "Ticket 344 is closed")


def test_the_reason_names_what_differs():
    found = judged("The broker listens on port 5671.", "The broker listens on port 5672.")
    assert found.reason == "different value: 5671 / 5672"
    assert judged("I moved to Oslo last week", "Actually I moved on to Bergen").reason == (
        "different home: oslo / bergen"
    )
    assert judged("I live in Oslo", "I moved to Bergen last week").reason == (
        "different home: oslo / bergen"
    )


def test_there_is_one_judgement_for_each_memory_in_their_order():
    others = ["Snow fell in March.", "The shed has a lock.", "Irma likes tea."]
    found = asyncio.run(JUDGE.judge("The shed has no lock.", others))
    assert [judgement.confidence >= 0.5 for judgement in found] == [False, True, False]
    assert found == [judged(other, "The shed has no lock.") for other in others]
    assert asyncio.run(JUDGE.judge("The shed has no lock.", [])) == []


def test_another_judge_judges_the_same_by_the_same_tables():
    others = ["Irma is 30.", "Otto is 30."]
    found = asyncio.run(JUDGE.judge("Irma is 40.", others))
    assert asyncio.run(RuleJudge().judge("Irma is 40.", others)) == found
    assert lexicon.cache_info().misses == 1  # building it takes as long as many judgements


WORDS = """
I Irma not never is was 3 4.5 1,250 % € half a quarter past ten of May 2020 12:30 99:99 am , . ? -
to 10-20 v1.2 2024-13-45 °C kg per prefers over no longer ' s 1st and without if unless Monday
"""
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join),
)


@examples(300)
@given(TEXTS)
def test_no_text_contradicts_itself(text):
    assert judged(text, text).confidence < 0.05


@examples(300)
@given(TEXTS, TEXTS)
def test_any_two_texts_can_be_judged(older, newer):
    assert 0 <= judged(older, newer).confidence <= 1


ALL_SEEDS = """
import asyncio, json
from mnemic.contradictions import RuleJudge
others = ["The gate is painted green.", "Irma is 40, lives in Bergamo and likes tea.", "Otto left."]
statement = "Irma moved to Ravenna, is 41 and no longer drinks tea at the red gate."
print(asyncio.run(RuleJudge().judge(statement, others)))
"""


def test_the_order_of_sets_does_not_change_a_judgement():
    answers = {
        subprocess.run(
            [sys.executable, "-c", ALL_SEEDS],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout
        for seed in range(4)
    }  # fmt: skip
    assert len(answers) == 1


# What is read, and how long that takes


@pytest.mark.parametrize("family", FAMILIES)
def test_the_work_of_a_judgement_grows_with_the_length_of_its_texts_and_not_faster(family):
    def work(length):
        text = FAMILIES[family](length)
        pair = f"Ana likes 3 teas. {text}", f"Ana likes 4 teas. {text} no"
        return lines_run(lambda: judged(*pair))

    assert work(3600) <= 6 * work(900)


def test_of_a_long_text_the_head_is_judged():
    words = "Irma has 3 boats and a dog. " * (MAX_CHARACTERS // 28)
    (long, short) = (judged(words + tail, "Irma has 4 boats.") for tail in ("She left. " * 999, ""))
    assert long == short
    assert long.confidence > 0.5
    spaces = " " * 10 * MAX_CHARACTERS
    assert judged(f"{spaces}Irma has 3 boats.", f"{spaces}Irma has 4 boats.").confidence > 0.5
    assert judged("x" * MAX_CHARACTERS + " Irma has 3 boats.", "Irma has 4 boats.").confidence == 0


def test_the_work_of_a_judgement_has_a_bound():
    def work(length):
        text = "I like 3 kinds of tea but not milk, " * (length // 36)
        return lines_run(lambda: judged(text, text + "!"))

    assert work(1_000_000) <= 1.1 * work(2 * MAX_CHARACTERS)


PIECES = (
    "9 to - of per a and at pm May 3 not like prefer than 1,000 million half past km \u00b2 5th "
    "v1.2 . ; ? Ana Ana's , before is was 2023-01-02 7:30 without never"
)


@examples(300)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=5),
            st.sampled_from(PIECES.split()),
        ),
        max_size=30,
    ),
    st.integers(0, 30),
)
def test_no_text_makes_a_judgement_fail(words, cut):
    one, other = " ".join(words), " ".join([*words[:cut], "4", *words[cut:]])
    assert 0 <= judged(one, other).confidence <= 1


def measured(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "benches.contradictions", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("half", "precision", "recall"), [("dev", 0.9, 0.75), ("dev2", 0.8, 0.6)])
def test_the_command_prints_figures_and_keeps_its_promise(half, precision, recall):
    ran = measured("--half", half)
    row = next(line.split() for line in ran.stdout.splitlines() if line.startswith("all"))
    assert float(row[5]) >= precision
    assert float(row[6]) >= recall


def test_the_command_shows_no_texts_of_the_held_out_half():
    ran = measured("--half", "held_out", "--errors")
    assert ran.returncode == 2
    assert "not shown" in ran.stderr
    assert ran.stdout == ""
