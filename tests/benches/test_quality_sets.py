"""Several labelled sets in one table: what sets may lack, paired differences, stored vectors."""

import json
import math

import numpy as np
import pytest

from benches.quality import __main__ as command
from benches.quality import compare, datasets, progress, report
from benches.quality.measure import Outcome
from benches.quality.methods.front_door import entry_fields
from benches.quality.methods.ranking import reciprocal_ranks
from benches.quality.vectors import AT_ONCE, StoredEmbedder
from tests.benches.test_quality_metrics import write_lines

TURNS = [
    {"id": "a", "text": "The kite is red.", "speaker": "Ada", "role": "user"},
    {"id": "b", "text": "Tea is ready.", "speaker": None, "role": "assistant"},
]
QUESTIONS = [
    {"id": "q1", "text": "kite", "evidence": ["a"]},
    {"id": "q2", "text": "tea", "evidence": ["b"]},
]


@pytest.fixture
def make_set(tmp_path):
    def make(name, meta=None, **common):
        folder = tmp_path / name
        folder.mkdir()
        shared = {"conv": "c", "session": 1, "time": None, "caption": ""} | common
        turns = [shared | {"pos": at} | turn for at, turn in enumerate(TURNS)]
        write_lines(folder / "turns.jsonl", turns)
        questions = [{"conv": "c", "category": "k"} | question for question in QUESTIONS]
        write_lines(folder / "questions.jsonl", questions)
        if meta is not None:
            (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        return folder

    return make


def memories_of(folder):
    return datasets.load_conversations(folder).collections[0].memories


def outcome(value, question="q", **changed):
    return Outcome("c", "k", question, dict.fromkeys(compare.FIGURES, value) | changed)


def outcomes(*values):
    return [outcome(value, f"q{at}") for at, value in enumerate(values)]


def measured(default, **parts):
    dataset = datasets.Dataset(name="set", sha256="0", relevant_from=1, collections=[])
    results = {"mnemic": default} | parts
    return compare.MeasuredSet(dataset, results, "mnemic", tuple(parts))


def test_a_turn_begins_with_its_speaker_unless_it_has_none_or_the_set_says_otherwise(make_set):
    labelled = [memory.content for memory in memories_of(make_set("plain"))]
    assert labelled == ["Ada: The kite is red.", "Tea is ready."]
    bare = memories_of(make_set("bare", {"label": False}))
    assert [memory.content for memory in bare] == ["The kite is red.", "Tea is ready."]
    assert bare[0].speaker == "Ada"


def test_role_is_stored_and_missing_times_sessions_and_speakers_are_left_out(make_set):
    user, assistant = map(entry_fields, memories_of(make_set("loose", session=None)))
    assert user["role"] == "user"
    assert assistant == {
        "content": "Tea is ready.",
        "role": "assistant",
        "metadata": {"benchmark_id": "b"},
    }


def test_the_hash_of_a_set_depends_on_its_meta_only_where_there_is_one(make_set):
    folder = make_set("plain")
    files = [folder / "turns.jsonl", folder / "questions.jsonl"]
    assert datasets.load_conversations(folder).sha256 == datasets.hash_of(*files)
    (folder / "meta.json").write_text('{"label": false}', encoding="utf-8")
    assert datasets.load_conversations(folder).sha256 == datasets.hash_of(
        *files, folder / "meta.json"
    )


def test_the_mean_of_a_question_is_that_of_its_four_figures():
    one = outcome(0.0, **{"R@10": 0.5, "nDCG@10": 0.3, "hit@3": 1.0})
    assert compare.mean_of(one) == pytest.approx(0.2)


def test_a_paired_difference_is_in_points_with_the_error_of_the_differences():
    difference, error = compare.paired(outcomes(1.0, 0.5, 0.2), outcomes(0.9, 0.1, 0.3))
    assert difference == pytest.approx((10 + 40 - 10) / 3)
    # Squared deviations of 10, 40 and -10 from 40/3 sum to 3800/3.
    assert error == pytest.approx(math.sqrt(3800 / 3 / 2 / 3))


def test_outcomes_of_other_questions_are_not_paired():
    with pytest.raises(ValueError, match="same questions"):
        compare.paired([outcome(1.0, "q1")], [outcome(1.0, "q2")])


def test_the_default_is_compared_with_its_best_part():
    found = compare.verdict(
        measured(outcomes(0.4, 0.6), weak=outcomes(0.1, 0.1), best=outcomes(0.7, 0.7))
    )
    assert (found.best_part, found.best) == ("best", pytest.approx(0.7))
    assert found.default == pytest.approx(0.5)
    assert found.difference == pytest.approx(-20)


@pytest.mark.parametrize(
    ("difference", "error", "reached"),
    [
        (-1.0, 1.0, True),
        (-1.01, 1.0, False),
        (0.0, 0.0, True),
        (-0.1, 0.0, False),
        (0.0, math.nan, True),
        (-0.1, math.nan, False),
    ],
)
def test_the_default_may_be_one_standard_error_below(difference, error, reached):
    assert compare.Verdict("set", 0.5, "part", 0.5, difference, error).reached is reached


@pytest.mark.parametrize("count", range(2, 40))
def test_a_loss_on_a_single_question_is_within_one_standard_error(count):
    reached = [0.7] * count
    one_lost = measured(outcomes(0.4, *reached[1:]), part=outcomes(*reached))
    two_lost = measured(outcomes(0.4, 0.4, *reached), part=outcomes(0.7, 0.7, *reached))
    assert compare.verdict(one_lost).reached
    assert not compare.verdict(two_lost).reached


def test_there_is_no_verdict_without_the_default_or_without_a_part():
    alone = measured(outcomes(1.0))
    assert compare.verdict(alone) is None
    without = compare.MeasuredSet(alone.dataset, {"part": outcomes(1.0)}, None, ("part",))
    assert compare.verdict(without) is None
    assert "best part" not in report.render_sets([without])


def test_the_table_over_sets_shows_each_difference_and_where_the_default_falls_short():
    good = measured(outcomes(0.9, 0.7), words=outcomes(0.6, 0.6))
    bad = measured(outcomes(0.1, 0.1), words=outcomes(0.6, 0.5))
    text = report.render_sets([good, bad])
    assert "0.800 ±0.100" in text
    assert "-20.0 ±10.0" in text
    assert "+45.0 ±5.0" in text
    assert text.count("NOT REACHED") == 1
    assert "on 1 of 2 sets" in text


def test_several_folders_are_measured_by_one_command_and_recorded_by_question(
    make_set, tmp_path, capsys
):
    folders = [str(make_set("first")), str(make_set("second", {"label": False}))]
    path = tmp_path / "record.json"
    command.main([*folders, "--methods", "mnemic-keyword", "--json", str(path)])
    printed = capsys.readouterr().out
    assert "first   mnemic, keyword" in printed
    assert "second  mnemic, keyword" in printed
    record = json.loads(path.read_text(encoding="utf-8"))
    assert [one["dataset"] for one in record["sets"]] == ["first", "second"]
    questions = record["sets"][1]["methods"]["mnemic, keyword"]["questions"]
    assert questions["c/q1"]["R@5"] == 1
    assert set(questions) == {"c/q1", "c/q2"}


def test_one_folder_gives_the_tables_and_the_record_of_one_set(make_set, tmp_path, capsys):
    path = tmp_path / "record.json"
    command.main([str(make_set("only")), "--methods", "mnemic-keyword", "--json", str(path)])
    assert capsys.readouterr().out.startswith("only: 2 memories, 2 questions, sha256 ")
    assert json.loads(path.read_text(encoding="utf-8"))["dataset"] == "only"


def test_folders_of_the_same_name_are_refused(make_set, capsys):
    folder = str(make_set("twice"))
    with pytest.raises(SystemExit):
        command.parse([folder, folder])
    assert "name of its own" in capsys.readouterr().err


def test_a_rank_counts_by_its_reciprocal_and_an_unranked_row_nothing():
    scores = np.array([0.0, 3.0, 1.0])
    shares = reciprocal_ranks(scores, scores > 0)
    assert shares.tolist() == [0, 1 / 61, 1 / 62]
    assert reciprocal_ranks(scores).tolist() == [1 / 63, 1 / 61, 1 / 62]


class Counting:
    """An embedder whose vectors hold the length of the text, and which counts its texts."""

    model, dimensions, max_tokens, similarity_floor = "counting", 3, 16, None
    languages = score_floors = None

    def __init__(self):
        self.texts = []

    def characters_seen(self, text):
        return len(text)

    def embed(self, texts):
        self.texts += texts
        return np.array([[len(text), 0.1, 1] for text in texts], np.float32)


@pytest.fixture
def open_stored(tmp_path):
    opened = []

    def open_one(embedder, runtime="1"):
        opened.append(StoredEmbedder(embedder, tmp_path / "folder" / "vectors.sqlite", runtime))
        return opened[-1]

    yield open_one
    for stored in opened:
        stored.close()


def test_a_text_is_embedded_once_and_its_vector_comes_back_bit_for_bit(open_stored):
    texts = ["a", "bb", "a", "ccc"]
    expected = Counting().embed(texts)
    first, again = Counting(), Counting()
    assert open_stored(first).embed(texts).tobytes() == expected.tobytes()
    assert first.texts == ["a", "bb", "ccc"]
    later = open_stored(again)
    assert later.embed(texts).tobytes() == expected.tobytes()
    assert (again.texts, later.embedded) == ([], 0)


def test_more_texts_than_are_stored_at_once_keep_their_order(open_stored):
    texts = ["x" * length for length in range(2 * AT_ONCE + 1)]
    vectors = open_stored(Counting()).embed(texts)
    assert vectors[:, 0].tolist() == list(range(2 * AT_ONCE + 1))


def test_no_texts_are_no_rows(open_stored):
    assert open_stored(Counting()).embed([]).shape == (0, 3)


def test_another_model_or_version_has_vectors_of_its_own(open_stored):
    open_stored(Counting()).embed(["a"])
    other, newer = Counting(), Counting()
    other.model = "other"
    open_stored(other).embed(["a"])
    open_stored(newer, runtime="2").embed(["a"])
    assert other.texts == newer.texts == ["a"]


def test_progress_counts_the_questions_and_waits_between_its_lines(capsys):
    shown = progress.Progress("set, method", 4, progress.Line(every=0))
    shown.searched(2.0)
    shown.searched(4.0)
    assert capsys.readouterr().err.splitlines() == [
        "set, method: 1 of 4 questions, about 6 s left",
        "set, method: 2 of 4 questions, about 6 s left",
    ]
    progress.Progress("set, method", 4, progress.Line(every=60)).searched(1.0)
    assert capsys.readouterr().err == ""
