"""`mnemic import --from` and `mnemic export --to`."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mnemic import Memory
from mnemic.cli.main import DONE, FAILED, USAGE
from mnemic.importers.kinds import KINDS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
MEM0 = str(FIXTURES / "mem0")


def test_an_import_says_what_came_for_whom_and_what_was_left_behind(run):
    code, out, error = run("import", "--from", "mem0", MEM0)
    assert (code, error) == (DONE, "")
    assert out.splitlines() == [
        "6 memories: 6 new, 0 changed, 0 unchanged",
        "         1 of (no user)",
        "         2 of ana",
        "         3 of ben",
        "left behind: 6 vectors: the texts are embedded anew",
    ]
    assert run("search", "allergic", "--user", "ben")[1].startswith("0.")
    assert run("import", "--from", "mem0", MEM0)[1].startswith("6 memories: 0 new, 0 changed, 6 un")


def test_many_users_are_cut_short(run, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"text": "x", "user": "u{at:03}"}}\n' for at in range(100)))
    _, out, _ = run("import", "--from", "jsonl", path, "--dry-run")
    assert out.splitlines()[-2:] == ["         1 of u019", "  and 80 more users; --json has all"]


def test_a_dry_run_counts_and_makes_no_file(run, tmp_path):
    code, out, _ = run("import", "--from", "mem0", MEM0, "--dry-run")
    assert code == DONE
    assert out.startswith("6 memories: 6 new, 0 changed, 0 unchanged; nothing was stored\n")
    assert not (tmp_path / "memory.db").exists()


def test_a_dry_run_compares_with_what_is_stored(run, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,text\n1,Tea\n2,Rain\n3,Snow\n")
    run("import", "--from", "csv", path)
    assert run("forget", "--keep", run("search", "Snow", "-n", "1")[1].split()[-1])[0] == DONE
    path.write_text("id,text\n1,Coffee\n2,Rain\n3,Snow\n4,Fog\n")
    expected = "4 memories: 1 new, 1 changed, 1 unchanged"
    kept = "kept as they are: 1 that were changed or deleted here"
    dry = run("import", "--from", "csv", path, "--dry-run")[1].splitlines()
    assert dry[:2] == [f"{expected}; nothing was stored", kept]
    assert len(run("list")[1].splitlines()) == 2
    assert run("import", "--from", "csv", path)[1].splitlines()[:2] == [expected, kept]
    assert len(run("list")[1].splitlines()) == 3


def test_an_import_is_one_object_for_programs(run):
    _, out, _ = run("import", "--from", "mem0", MEM0, "--json", "--user", "ana")
    found = json.loads(out)
    assert (found["kind"], found["new"], found["users"]) == ("mem0", 3, {"ana": 3})
    assert found["left_out"] == {"memories of other users than the one named": 3}
    assert found["is_dry_run"] is False


def test_the_environment_names_the_user_and_all_users_overrides_it(run, monkeypatch):
    monkeypatch.setenv("MNEMIC_USER", "ana")
    assert run("import", "--from", "mem0", MEM0)[1].startswith("3 memories: 3 new")
    assert run("import", "--from", "mem0", MEM0, "--all-users")[1].startswith("6 memories: 4 new")


def test_fields_of_text_and_user_are_named(run, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"words": "Rain", "who": "ben"}\n')
    code, out, error = run("import", "--from", "jsonl", path)
    assert (code, out) == (
        DONE,
        "0 memories: 0 new, 0 changed, 0 unchanged\n" + out.split("\n", 1)[1],
    )
    assert "--text-field" in error
    given = ["--text-field", "words", "--user-field", "who"]
    assert "1 of ben" in run("import", "--from", "jsonl", path, *given)[1]


@pytest.mark.parametrize("kind", [*KINDS, "mnemic"])
def test_a_source_that_is_not_there_is_one_sentence(run, kind):
    code, out, error = run("import", "--from", kind, "/nowhere/at/all")
    assert (code, out) == (FAILED, "")
    assert error.startswith("mnemic: /nowhere/at/all")
    assert error.count("\n") == 1


def test_a_memory_is_not_imported_into_itself(run, tmp_path):
    run("add", "x")
    code, _, error = run("import", "--from", "jsonl", tmp_path / "memory.db")
    assert code == FAILED
    assert "is the memory that would be written" in error


def test_options_of_other_libraries_go_with_them(run, tmp_path):
    run("add", "x")
    run("export", tmp_path / "all.jsonl")
    code, _, error = run("import", tmp_path / "all.jsonl", "--dry-run")
    assert code == FAILED
    assert "go with --from" in error
    with pytest.raises(SystemExit) as left:
        run("import", "--from", "zep", "x")
    assert left.value.code == USAGE


def test_what_is_no_export_of_mnemic_is_sent_to_from(run, tmp_path):
    (tmp_path / "rows.csv").write_text("text\nx\n")
    code, _, error = run("import", tmp_path / "rows.csv")
    assert code == FAILED
    assert error.startswith("mnemic: if it is no export of mnemic, --from names what it is\n")


def test_hostile_names_of_users_obey_no_terminal(run, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "x", "user": "\x1b[2Jana"}) + "\n")
    code, out, error = run("import", "--from", "jsonl", path)
    assert code == DONE
    assert "\x1b" not in out + error


def test_a_table_goes_to_stdout_or_to_a_new_file(run, tmp_path):
    run("import", "--from", "mem0", MEM0)
    code, out, error = run("export", "--to", "csv", "--all-users")
    assert (code, error) == (DONE, "mnemic: 6 memories written\n")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["user_id"] for row in rows} == {"", "ana", "ben"}
    path = tmp_path / "all.csv"
    assert run("export", "--to", "csv", "--user", "ana", path)[0] == DONE
    assert path.stat().st_mode & 0o777 == 0o600 or sys.platform == "win32"
    assert run("export", "--to", "csv", "--user", "ana", path)[2].startswith("mnemic: ")
    assert run("export", "--to", "csv", "--user", "ben", path, "--overwrite")[0] == DONE
    assert len(path.read_text().splitlines()) == 4
    for refused in (tmp_path / "memory.db", tmp_path):
        assert run("export", "--to", "csv", refused, "--overwrite")[0] == FAILED
    assert run("import", "--from", "csv", path)[1].startswith("3 memories: 0 new, 0 changed, 3 un")


def test_notes_of_one_user_go_to_a_folder_and_come_back(run, tmp_path, monkeypatch):
    run("import", "--from", "mem0", MEM0)
    folder = tmp_path / "notes"
    assert run("export", "--to", "markdown", folder, "--user", "ana")[0] == DONE
    assert len(list(folder.glob("mem_*.md"))) == 2
    assert run("export", "--to", "markdown", folder, "--user", "ana")[0] == FAILED
    for wrong in ([folder, "--all-users"], []):
        assert "one user's memories" in run("export", "--to", "markdown", *wrong)[2]
    monkeypatch.setenv("MNEMIC_DB", str(tmp_path / "other.db"))
    assert run("import", "--from", "markdown", folder)[1].splitlines()[1] == "         2 of ana"


def test_vectors_go_with_json_lines_alone(run, tmp_path):
    code, _, error = run("export", "--to", "csv", tmp_path / "x", "--embeddings")
    assert code == FAILED
    assert "goes with jsonl" in error


def test_what_a_stopped_import_stored_is_said(run, tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"id": "{at}", "text": "Memory {at}"}}\n' for at in range(600)))
    add_many, calls = Memory.add_many, []

    def failing(self, *given, **options):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return add_many(self, *given, **options)

    monkeypatch.setattr(Memory, "add_many", failing)
    code, _, error = run("import", "--from", "jsonl", path)
    assert code == 130
    assert error == "mnemic: 256 memories were stored; the same command goes on\nmnemic: stopped\n"
    done = run("import", "--from", "jsonl", path)[1]
    assert done.startswith("600 memories: 344 new, 0 changed, 256 unchanged")


def test_search_and_add_load_no_reader():
    program = (
        "import sys; import mnemic.cli.searching, mnemic.cli.writing; "
        "print(*(name for name in sys.modules if name.startswith('mnemic.importers')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "\n"
