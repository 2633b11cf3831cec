import io
import json
import re
import sys
from functools import partial

import pytest

from mnemic.cli.main import DONE, FAILED, main
from mnemic.demo.run import UnreadableFileError, read
from mnemic.memory import Memory
from tests.support.embedders import WordEmbedder
from tests.support.paths import DEMO


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr("mnemic.demo.run.Memory", partial(Memory, embedder=WordEmbedder(256)))

    def call(*arguments):
        status = main(["demo", *map(str, arguments)])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return call


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parts_of(out):
    """Return the parts of the output by their titles."""
    titles = re.findall(r"\n\n(\w.*)\n\n", out)
    return dict(zip(titles, re.split(r"\n\n\w.*\n\n", out)[1:], strict=True))


def lines_of(name):
    return (DEMO / name).read_text(encoding="utf-8").splitlines()


def contents(path):
    return [piece.fields["content"] for piece in read(path)[0]]


# The whole run


def test_the_example_is_stored_asked_closed_reopened_and_asked_again(run):
    status, out, err = run()
    turns, questions = lines_of("conversation.jsonl"), lines_of("questions.jsonl")[:5]
    assert (status, err) == (DONE, "")
    assert f"Stored {len(turns)} memories of" in out
    assert all(json.loads(question)["question"] in out for question in questions)
    assert "5 of 5 answers are identical" in out


def test_the_example_shows_whole_memories_with_reasons_that_add_up(run):
    parts = parts_of(run()[1])
    asked = parts["Asking"]
    shown = re.findall(r"^ [ +] (\d\.\d{3})  2026-\d\d-\d\d  ", asked, re.MULTILINE)
    reasons = re.findall(r"why: (.*?);\s+words:", asked, re.DOTALL)
    assert len(shown) == len(reasons) == 15
    for score, reason in zip(shown, reasons, strict=True):
        parts_of_score = re.findall(r"[+-]\d\.\d{3}", reason)
        assert sum(map(float, parts_of_score)) == pytest.approx(float(score), abs=0.005)
    contents = {json.loads(line)["content"] for line in lines_of("conversation.jsonl")}
    flat = " ".join(asked.split())
    assert sum(f"{content} why:" in flat for content in contents) >= 10


def test_the_example_shows_a_contradiction_and_a_context(capsys):
    pytest.importorskip("mnemic_minilm")
    assert main(["demo"]) == DONE
    parts = parts_of(capsys.readouterr().out)
    assert "I live in Bergen" in parts["A contradiction"]
    assert "different home: bergen" in parts["A contradiction"]
    assert re.search(r"^   \[1\] 2026-.*dashboard", parts["A text for a prompt"], re.MULTILINE)
    assert re.search(r"Opened 176 memories in \d+ ms", parts["Closing and opening"])


def test_a_file_of_ones_own_answers_ones_own_questions(run, tmp_path):
    notes = written(tmp_path / "notes.md", "# Boat\n\nThe spare key hangs behind the compass.\n")
    status, out, err = run(notes, "--ask", "where is the spare key?", "--ask", "which compass?")
    assert (status, err) == (DONE, "")
    shown = parts_of(out)
    assert shown["Asking"].count("Boat: The spare key hangs behind the compass.") == 2
    assert "key hangs behind the compass." in shown["A text for a prompt"]
    assert "A contradiction" not in shown
    assert "2 of 2 answers are identical" in out


@pytest.mark.parametrize("typed", ["first?\nsecond?\n", "first?\nsecond?\n\nthird?\n", ""])
def test_questions_may_be_typed(run, tmp_path, monkeypatch, typed):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    status, out, err = run(written(tmp_path / "notes.txt", "a note"))
    asked = 2 if typed else 0
    assert (status, err) == (DONE, "")
    assert f"{asked} of {asked} answers are identical" in out


def test_a_kept_file_is_not_filled_twice_and_takes_what_is_new(run, tmp_path):
    notes, kept = tmp_path / "notes.txt", tmp_path / "kept.db"
    written(notes, "first\nsecond\nsecond\n")
    out = run(notes, "--db", kept)[1]
    assert "Stored 2 memories" in out
    assert f"The memories are kept in {kept}" in out
    assert "Stored 0 memories of notes.txt" in run(notes, "--db", kept)[1]
    written(notes, "first\nadded\nsecond\n")
    assert "Stored 1 memories" in run(notes, "--db", kept)[1]
    with Memory(kept, "demo", embedder=WordEmbedder(256)) as memory:
        assert memory.count() == 3


def test_bad_lines_are_named_with_the_reason_and_the_others_are_stored(run, tmp_path):
    lines = [
        '{"content": "good"}',
        '{"content": "cut off',
        "[1, 2]",
        '{"colour": "red"}',
        "",
        '{"content": "too much", "importance": 7}',
        '{"content": "also good", "colour": "red", "id": 5, "user_id": "u"}',
        '"just a text"',
    ]
    status, out, err = run(written(tmp_path / "a.jsonl", "\n".join(lines)), "--ask", "good")
    assert status == DONE
    assert "Stored 3 memories" in out
    told = dict(re.findall(r"line (\d+): left out: (.*)", err))
    assert set(told) == {"2", "3", "4", "6"}
    assert "column" in told["2"]
    assert told["3"] == "it is a JSON list, not an object with a content"
    assert told["4"] == "it has no content; its keys are ['colour']"
    assert told["6"] == "importance must be from 0 to 1, got 7"


def test_many_bad_lines_are_counted(run, tmp_path):
    status, _, err = run(written(tmp_path / "a.jsonl", "{}\n" * 50), "--ask", "x")
    assert status == FAILED
    assert err.count("left out: ") == 10
    assert "50 left out in all" in err
    assert "there is no memory in it" in err


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"caf\xe9\n", "cannot be read: 'utf-8' codec can't decode byte 0xe9"),
        ("a.txt", b" \n\n", "there is nothing in it"),
        ("a.md", b"# Title alone\n", "there is nothing in it"),
        ("a.json", b'[\n{"content":\n"x"}\n]\n', "line 1: left out: Expecting value"),
        ("a.jsonl", b"[" * 100_000, "line 1: left out: maximum recursion depth"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(run, tmp_path, name, data, message):
    status, _, err = run(written(tmp_path / name, data), "--ask", "x")
    assert status == FAILED
    assert message in err


def test_a_missing_file_and_a_directory_are_told_apart(run, tmp_path):
    assert "No such file" in run(tmp_path / "none.txt")[2]
    assert "Is a directory" in run(tmp_path)[2]


def test_a_database_that_is_not_ours_is_refused(run, tmp_path):
    notes = written(tmp_path / "notes.txt", "a note")
    status, _, err = run(notes, "--db", notes)
    assert status == FAILED
    assert "not a mnemic file" in err
    assert notes.read_text() == "a note"


def test_a_negative_limit_is_refused(run, tmp_path):
    notes = written(tmp_path / "notes.txt", "a note")
    assert run(notes, "--ask", "x", "--limit", "-1")[0] == FAILED


def test_what_a_terminal_would_obey_is_spelled_out(run, tmp_path):
    out = run(written(tmp_path / "notes.txt", "a \x1b[2J \u202e note"), "--ask", "note")[1]
    assert "a \\u001b[2J \\u202e note" in out
    assert "\x1b" not in out


def test_a_file_without_an_end_is_refused(run):
    assert "give it in parts" in run("/dev/zero")[2]


# Reading


def test_markdown_gives_a_memory_a_paragraph_and_list_item_with_its_heading(tmp_path):
    path = written(
        tmp_path / "a.md",
        "Intro\nin two lines.\n\n# First #\nText.\n- one\n  more of one\n- two\n\n## Second\n"
        "1. step\n2. step\n\n```sh\n# not a heading\n\n- not an item\n```\nAfter.\n",
    )
    assert contents(path) == [
        "Intro\nin two lines.",
        "First: Text.",
        "First: - one\n  more of one",
        "First: - two",
        "Second: 1. step",
        "Second: 2. step",
        "Second: ```sh\n# not a heading\n\n- not an item\n```",
        "Second: After.",
    ]


def test_a_code_block_that_never_ends_is_kept(tmp_path):
    assert contents(written(tmp_path / "a.md", "```\ncode\nmore")) == ["```\ncode\nmore"]


def test_text_gives_a_memory_a_paragraph_or_a_line_if_there_are_no_blank_ones(tmp_path):
    assert contents(written(tmp_path / "a.txt", "a\nb\n\nc\r\n\r\n\r\nd")) == ["a\nb", "c", "d"]
    assert contents(written(tmp_path / "b.txt", "a\nb\nc\n")) == ["a", "b", "c"]
    assert contents(written(tmp_path / "c.log", "\ufeffa")) == ["a"]


def test_unknown_keys_go_to_metadata_beside_those_that_are_there(tmp_path):
    path = written(tmp_path / "a.jsonl", '{"text": "x", "mood": "good", "metadata": {"a": 1}}')
    assert read(path)[0][0].fields == {"content": "x", "metadata": {"mood": "good", "a": 1}}


def test_an_unreadable_file_is_a_value_error(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        read(tmp_path / "none")
    assert issubclass(UnreadableFileError, ValueError)
