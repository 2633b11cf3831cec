"""The command where its streams, encoding, place or arguments are not as they ought to be."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest

from mnemic import Memory
from mnemic.cli.main import BUSY, DONE, FAILED, MISSING, USAGE, VERBS

COMMAND = f"'{sys.executable}' -m mnemic.cli"
WORDS = "漢字 é 🎉"
NOBODY = "01a225d6-dfcc-7183-9e0c-9a570f47180e"
OPENING = [
    *(["add", "x"], ["search", "x"], ["context", "x"], ["list"], ["get", NOBODY]),
    *(["edit", NOBODY, "x"], ["forget", NOBODY], ["link", NOBODY], ["contradictions", "x"]),
    *(["history", NOBODY], ["timeline"], ["duplicates"], ["stats"], ["users"], ["export"]),
    *(["backup", "copy.db"], ["verify"], ["reembed"]),
]


@pytest.fixture
def shell(tmp_path):
    """Run a line of a shell in which $M is the command; return its code, output and errors."""

    def run(line, **variables):
        place = str(tmp_path / "memory.db")
        environment = os.environ | {"M": COMMAND, "MNEMIC_DB": place} | variables
        done = subprocess.run(
            ["bash", "-c", line.replace("$M", COMMAND)],  # noqa: S607
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            check=False,
            timeout=60,
        )
        error = done.stderr.decode()
        assert error.count("\n") <= 1, error
        return done.returncode, done.stdout, error

    return run


@pytest.mark.parametrize(
    "line",
    [
        *("$M list >&-", "$M list 2>&-", "$M list <&-", "$M list <&- >&- 2>&-"),
        *("$M add x >&-", "$M add <&-", "$M export >&-", "$M verify 2>&-", "$M mcp <&-"),
        *("$M --help >&-", "$M add --help >&-", "$M hook prompt <&- >&- 2>&-"),
    ],
)
def test_a_stream_that_is_closed_is_no_error(shell, line):
    assert shell("$M add seed")[0] == DONE
    assert shell(line)[0] == DONE
    assert shell("$M verify")[0] == DONE


@pytest.mark.parametrize("verb", ["--version", "--help", "list", "export"])
def test_a_full_disk_behind_the_output_is_one_sentence(shell, verb):
    shell("$M add seed")
    code, _, error = shell(f"$M {verb} >/dev/full")
    assert code == FAILED
    assert "No space left on device" in error


@pytest.mark.parametrize("verb", ["--version", "--help", "add --help", "list", "completions bash"])
def test_a_pipe_that_is_closed_at_once_is_no_error(shell, verb):
    shell("$M add seed")
    assert shell(f"{{ sleep 1; $M {verb}; }} | true; exit ${{PIPESTATUS[0]}}") == (DONE, b"", "")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("sea", ["search"]),
        ("search --key", ["--keyword"]),
        ("import --from lang", ["langgraph"]),
        ("import no", ["notes.csv"]),
        ("list --db no", ["notes.csv"]),
        ("install cu", ["cursor"]),
    ],
)
def test_bash_completes_verbs_options_choices_and_files(shell, tmp_path, typed, completed):
    pytest.importorskip("shtab", reason="the extra cli is not installed")
    (tmp_path / "notes.csv").touch()
    words = f"mnemic {typed}"
    code, out, _ = shell(
        f'eval "$($M completions bash)"; COMP_WORDS=({words}); COMP_CWORD={words.count(" ")}; '
        '_shtab_mnemic; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert code == DONE
    assert out.decode().split() == completed


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_encoding_without_a_character_spells_it_out(shell, encoding):
    shell(f"$M add '{WORDS}'")
    for verb in ("list", "search x", "timeline", "context x", "list --user 漢"):
        assert shell(f"$M {verb}", PYTHONIOENCODING=encoding)[0] == DONE, verb
    spelled = WORDS.encode(encoding, "backslashreplace")
    assert shell("$M list", PYTHONIOENCODING=encoding)[1].startswith(spelled)
    record = json.loads(shell("$M list --json", PYTHONIOENCODING=encoding)[1].decode(encoding))
    assert record["content"] == WORDS
    for form in ("jsonl", "csv"):
        assert WORDS in shell(f"$M export --to {form}", PYTHONIOENCODING=encoding)[1].decode()


def test_what_is_no_text_is_one_sentence(shell, tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    assert "no text in utf-8" in shell("$M add --file latin.txt")[2]
    assert "no text in utf-8" in shell("$M add < latin.txt", PYTHONIOENCODING="utf-8")[2]
    for line in ("$M add $'caf\\xe9'", "$M list --user $'\\xff'", "$M list --db $'\\xff'"):
        assert shell(line)[0] == FAILED, line


def test_an_editors_mark_is_no_part_of_a_memory(shell, tmp_path):
    (tmp_path / "note.txt").write_bytes(b"\xef\xbb\xbfBuy milk\n")
    shell("$M add --file note.txt")
    shell("$M add < note.txt")
    assert [line.split(b"\t")[0] for line in shell("$M list")[1].splitlines()] == [b"Buy milk"] * 2


@pytest.mark.parametrize("given", ["< /dev/zero", "--file /dev/zero"])
def test_a_text_without_an_end_is_refused(shell, given):
    code, _, error = shell(f"ulimit -v 8000000; $M add {given}")
    assert code == FAILED
    assert "give it in parts" in error


def test_nothing_to_store_is_said(shell):
    said = (DONE, b"", "mnemic: there is no text; nothing was stored\n")
    assert shell("$M add < /dev/null") == said


@pytest.mark.parametrize("verb", ["list", "timeline"])
@pytest.mark.parametrize("number", ["-1", "99999999999999999999", "x"])
def test_a_number_that_is_none_is_a_mistake_in_the_command(run, verb, number):
    with pytest.raises(SystemExit) as left:
        run(verb, "-n", number)
    assert left.value.code == USAGE


@pytest.mark.parametrize("kind", ["folder", "text", "newer", "dangling", "pipe", "long", "missing"])
def test_no_verb_opens_what_is_no_memory(run, tmp_path, monkeypatch, kind):
    place = tmp_path / ("x" * 300 if kind == "long" else kind)
    if kind == "folder":
        place.mkdir()
    elif kind == "text":
        place.write_text("hello\n" * 100)
    elif kind == "newer":
        with Memory(place, embedder=None) as memory:
            memory.add("x")
        _set_version(place, 9999)
    elif kind == "dangling":
        place.symlink_to("no-folder/x.db")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "missing":
        place = tmp_path / "no-folder" / "x.db"
    monkeypatch.setenv("MNEMIC_DB", str(place))
    before = {path.name for path in tmp_path.iterdir()}
    for verb in OPENING:
        code, _, error = run(*verb)
        assert (code, error.count("\n")) == (FAILED, 1), verb
        assert place.name[:200] in error, verb
    code, out, _ = run("doctor")
    assert (code, "problem: " in out) == (FAILED, True)
    assert {path.name for path in tmp_path.iterdir()} == before


def _set_version(place, number):
    connection = sqlite3.connect(place)
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()


def test_a_file_that_is_full_keeps_what_was_said_to_be_stored(shell):
    shell("$M add seed")
    stored = shell(
        "ulimit -f 160; trap '' XFSZ; for i in 1 2 3 4 5 6 7 8; do $M add \"$(printf %09000d $i)\" "
        "2>>errors || break; done"
    )[1]
    code, out, _ = shell("$M list --json")
    assert code == DONE
    ids = {json.loads(line)["id"] for line in out.splitlines()}
    assert 0 < len(stored.split()) < 8
    assert {line.decode() for line in stored.split()} <= ids
    assert b"Traceback" not in shell("cat errors")[1]
    assert len(shell("cat errors")[1].splitlines()) == 1
    assert shell("$M verify")[0] == DONE


def test_commands_at_once_on_one_new_file_all_store(shell):
    shell('for i in 1 2 3 4 5 6; do $M add "memory $i" >>ids 2>>errors & done; wait')
    assert shell("cat errors")[1] == b""
    assert len(shell("$M list")[1].splitlines()) == 6
    assert shell("$M verify")[0] == DONE


def test_the_doctor_says_what_it_found_before_and_after_a_problem(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "mnemic" / "hooks.log").mkdir(parents=True)
    run("add", "x")
    code, out, _ = run("doctor")
    assert (code, out.count("problem: "), "memories          1 of" in out) == (FAILED, 1, True)
    (tmp_path / "text").write_text("hello\n" * 100)
    code, out, _ = run("doctor", "--db", tmp_path / "text")
    assert (code, out.count("problem: ")) == (FAILED, 2)
    assert f"place             {tmp_path / 'text'}" in out


@pytest.mark.parametrize("to", ["jsonl", "csv", "markdown"])
def test_what_is_there_is_replaced_by_an_option_alone(run, tmp_path, to):
    run("add", "x", "--user", "ana")
    there = tmp_path / "there"
    there.write_text("mine")
    code, _, error = run("export", "--to", to, "--user", "ana", there)
    assert (code, there.read_text()) == (FAILED, "mine")
    assert "--overwrite" in error
    assert "True" not in error


def test_a_new_line_in_a_name_begins_no_line_of_an_error(run, tmp_path):
    (tmp_path / "a\nb").mkdir()
    code, _, error = run("list", "--db", tmp_path / "a\nb")
    assert (code, error.count("\n")) == (FAILED, 1)
    with pytest.raises(SystemExit):
        run("list", "--\x1b[2J\nx")


def test_each_exit_code_is_what_the_page_says(run, monkeypatch):
    run("add", "x")
    assert run("list")[0] == DONE
    assert run("search", "nothing like it", "--tag", "none")[0] == DONE
    assert run("get", "no id")[0] == FAILED
    assert run("serch")[0] == USAGE
    for verb in ("get", "history", "link"):
        assert run(verb, NOBODY)[0] == MISSING
    assert run("edit", NOBODY, "x")[0] == MISSING
    url = "postgresql://127.0.0.1:1/none?connect_timeout=1"
    monkeypatch.setenv("MNEMIC_DB", url)
    assert run("list")[0] in {BUSY, FAILED}


def test_a_defect_is_one_sentence_and_its_traceback_can_be_had(run, monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(Memory, "stats", fails)
    code, _, error = run("stats")
    assert code == FAILED
    assert error.startswith("mnemic: ZeroDivisionError: by nothing; this is a defect")
    monkeypatch.setenv("MNEMIC_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("stats")


def test_every_verb_is_tried():
    tried = {verb for verb, *_ in OPENING}
    assert set(VERBS) - tried == {
        "import",
        "rekey",
        "mcp",
        "install",
        "doctor",
        "completions",
        "demo",
    }
