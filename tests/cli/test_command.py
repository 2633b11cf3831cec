"""The command `mnemic`: every verb, its exit codes, and what it prints."""

import base64
import json
import re
import time

import pytest

from mnemic import Memory
from mnemic._core import __version__
from mnemic.cli.call import Call
from mnemic.cli.main import BUSY, DONE, FAILED, MISSING, USAGE, VERBS, main
from mnemic.cli.place import shown
from mnemic.demo.printing import printable
from tests.support.e5 import small_package
from tests.support.embedders import WordEmbedder


def added(run, *arguments, stdin=""):
    code, out, error = run("add", *arguments, stdin=stdin)
    assert code == DONE, error
    return out.split()


def test_version_and_help_need_no_memory(place, capsys):
    assert main(["--version"]) == DONE
    assert capsys.readouterr().out == f"mnemic {__version__}\n"
    assert main([]) == DONE
    assert all(f"\n  {name} " in capsys.readouterr().out or name for name in VERBS)
    assert not place.exists()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb, capsys):
    with pytest.raises(SystemExit) as left:
        main([verb, "--help"])
    assert left.value.code == DONE
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: mnemic {verb} ")
    assert "--json" in shown


def test_a_verb_that_is_not_there_is_named_with_the_nearest(capsys):
    assert main(["serch", "x"]) == USAGE
    assert capsys.readouterr().err == "mnemic: there is no command 'serch'; did you mean search?\n"


def test_a_mistake_in_the_arguments_is_one_sentence(capsys):
    with pytest.raises(SystemExit) as left:
        main(["search"])
    assert left.value.code == USAGE
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "query" in error


def test_what_is_added_is_found_shown_changed_and_forgotten(run, place):
    (oslo,) = added(run, "Ana moved to Oslo in May", "--tag", "home")
    (nuts,) = added(run, "Peanut allergy", "--importance", "0.9")
    code, out, _ = run("search", "where does Ana live?")
    assert code == DONE
    assert out.splitlines()[0].split("\t")[1:] == ["Ana moved to Oslo in May", _today(), oslo]
    assert run("list")[1].splitlines()[0].endswith(nuts)
    assert run("edit", oslo, "Ana moved to Rome")[1] == f"{oslo} version 2\n"
    assert "content:              Ana moved to Rome" in run("get", oslo)[1]
    assert "Ana moved to Rome" in run("context", "where is Ana?")[1]
    assert run("link", oslo, nuts, "--type", "refines")[1] == f"{oslo} refines {nuts} 1.00\n"
    assert run("link", nuts)[1] == f"{oslo} refines {nuts} 1.00\n"
    assert run("forget", oslo, "--dry-run")[2] == "mnemic: would forget 1; nothing was changed\n"
    code, out, _ = run("forget", oslo)
    assert (code, "forgot 1" in out, "bytes are erased" in out) == (DONE, True, True)
    assert b"Rome" not in place.read_bytes()
    code, out, error = run("get", oslo)
    assert (code, out) == (MISSING, "")
    assert oslo in error


def _today():
    return time.strftime("%Y-%m-%d", time.gmtime())


def test_each_verb_prints_lines_of_json(run):
    (first,) = added(run, "Ana moved to Oslo in May")
    (second,) = added(run, "Ana lives in Bergen")
    for arguments, key in [
        (["search", "Ana"], "entry"),
        (["list"], "content"),
        (["timeline"], "content"),
        (["get", first], "content"),
        (["history", first], "content"),
        (["context", "Ana"], "text"),
        (["contradictions", "Ana lives in Rome"], "entry"),
        (["link", first, second], "strength"),
        (["edit", first, "--importance", "0.7"], "version"),
        (["stats"], "active_entries"),
        (["users"], "active_entries"),
        (["verify"], "problems"),
        (["doctor"], "facts"),
        (["forget", first], "erased"),
    ]:
        code, out, _ = run(*arguments, "--json")
        lines = [json.loads(line) for line in out.splitlines()]
        assert code == DONE, arguments
        assert lines, arguments
        assert all(key in line for line in lines), (arguments, lines[0])


def test_memories_come_from_arguments_files_and_standard_input(run, tmp_path):
    assert len(added(run, "one", "two")) == 2
    assert len(added(run, stdin="three\nof two lines")) == 1
    assert len(added(run, "-", "--lines", stdin="four\n\nfive\n")) == 2
    (tmp_path / "note.txt").write_text("six\n", encoding="utf-8")
    assert len(added(run, "--file", str(tmp_path / "note.txt"))) == 1
    shown = {line.split("\t")[0] for line in run("list")[1].splitlines()}
    assert shown == {"one", "two", "three of two lines", "four", "five", "six"}


def test_types_tags_and_days_leave_out_the_rest(run):
    added(run, "a preference for tea", "--type", "preference", "--tag", "tea")
    added(run, "a fact about tea")
    for verb in (["list"], ["search", "tea"], ["timeline"], ["forget", "--dry-run"]):
        for filters in (["--type", "preference"], ["--tag", "tea"]):
            shown = run(*verb, *filters)[1]
            assert ("preference for" in shown, "a fact" in shown) == (True, False), verb
    for verb in (["list"], ["search", "tea"], ["timeline"], ["context", "tea"]):
        assert "tea" in run(*verb, "--since", "2026-01-01")[1], verb
        assert "tea" not in run(*verb, "--until", "2026-01-01")[1], verb
    assert run("forget", "--tag", "tea")[1].count("forgot 1 ") == 1
    assert run("list", "--type", "no such type")[0] == FAILED
    assert run("forget")[0] == FAILED


def test_a_dry_run_shows_any_number_of_memories_and_json_where_it_is_wanted(run, place):
    with Memory(place, embedder=None) as memory:
        memory.add_many([{"content": f"note {at}", "tags": ["todo"]} for at in range(1100)])
        memory.add("kept")
    code, out, error = run("forget", "--tag", "todo", "--dry-run", "--json")
    assert (code, error) == (DONE, "mnemic: would forget 1100; nothing was changed\n")
    contents = {json.loads(line)["content"] for line in out.splitlines()}
    assert contents == {f"note {at}" for at in range(1100)}


def test_memories_of_another_model_are_shown_moved_forgotten_and_embedded_again(run, place):
    with Memory(place, embedder=WordEmbedder()) as memory:
        identity = str(memory.add("red sofa").id)
        other = str(memory.add("blue sofa").id)
    for verb in (
        *(["list"], ["get", identity], ["history", identity], ["timeline"], ["stats"], ["users"]),
        *(["export"], ["verify"], ["link", identity, other], ["search", "sofa", "--keyword"]),
    ):
        assert run(*verb)[0] == DONE, verb
    assert run("forget", other)[0] == DONE
    for verb in (["search", "sofa"], ["context", "sofa"], ["add", "lamp"]):
        code, _, error = run(*verb)
        assert (code, "mnemic reembed" in error, error.count("\n")) == (FAILED, True, 1), verb
    assert run("reembed")[0] == DONE
    assert "red sofa" in run("search", "sofa")[1]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/home/me/me@home?.db", "/home/me/me@home?.db"),
        ("postgresql://me:hush@host:1/base?password=hush", "postgresql://host:1/base"),
        ("postgresql://me:hu/s@h#@host/base", "postgresql://host/base"),
        ("postgresql://me:hu?sh@host/base", "postgresql://***"),
        ("postgresql://host/base?password=hu@sh", "postgresql://***"),
        ("postgresql://[::1", "postgresql://[::1"),
    ],
)
def test_a_url_is_shown_without_its_login(place, expected):
    assert shown(place) == expected


@pytest.mark.parametrize("verb", [["doctor"], ["list"], ["forget", "--everything"]])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_password_of_a_server_is_shown(run, verb, form):
    url = "postgresql://me:hush-hush@127.0.0.1:1/none?connect_timeout=1&password=hush-hush"
    code, out, error = run(*verb, *form, "--db", url)
    assert code != DONE
    assert "hush-hush" not in out + error


def test_no_password_is_in_a_receipt(run, monkeypatch):
    added(run, "one")
    monkeypatch.setattr(Call, "place", "postgresql://me:hush-hush@host/base")
    monkeypatch.setattr(Call, "memory", lambda *_, **__: Memory(":memory:", embedder=None))
    for form in ([], ["--json"]):
        code, out, _ = run("forget", "--everything", *form)
        assert (code, "//host/base" in out, "hush-hush" in out) == (DONE, True, False)


def test_a_key_stores_once(run):
    assert added(run, "once", "--key", "k") == added(run, "once", "--key", "k")
    assert run("add", "a", "b", "--key", "k")[0] == FAILED


def test_users_see_their_own(run, monkeypatch):
    added(run, "of alice", "--user", "alice")
    monkeypatch.setenv("MNEMIC_USER", "bob")
    added(run, "of bob")
    assert [line.split("\t")[0] for line in run("list")[1].splitlines()] == ["of bob"]
    assert len(run("list", "--all-users")[1].splitlines()) == 2
    assert "of alice" not in run("search", "alice")[1]
    assert "of alice" not in run("context", "alice")[1]
    (alice,) = run("list", "--user", "alice")[1].split("\t")[-1:]
    assert run("get", alice.strip())[0] == MISSING
    assert run("forget", alice.strip())[1].endswith("nothing was there\n")


def test_versions_are_shown_newest_first(run, place):
    with Memory(place) as memory:
        first = memory.add("Ana lives in Oslo")
        second = memory.add("Ana lives in Rome", supersedes=first.id)
        third = memory.add("Ana lives in Bergen", supersedes=second.id)
    for one in (first, second, third):
        lines = run("history", str(one.id))[1].splitlines()
        assert [line.split("\t")[-1] for line in lines] == [
            str(each.id) for each in (third, second, first)
        ]
    assert run("history", "01a225d6-dfcc-7183-9e0c-9a570f47180e")[0] == MISSING


def test_duplicates_stand_below_what_they_repeat(run):
    (first,) = added(run, "the same words")
    (second,) = added(run, "the same words")
    lines = run("duplicates")[1].splitlines()
    assert {line.split("\t")[-1] for line in lines} == {first, second}


def test_memories_move_by_export_import_and_backup(run, tmp_path, monkeypatch):
    added(run, "one", "two")
    exported = tmp_path / "all.jsonl"
    assert run("export", str(exported))[2] == "mnemic: 2 memories written\n"
    assert run("export", str(exported))[0] == FAILED
    assert run("export")[1].splitlines()[1:] == exported.read_text().splitlines()[1:]
    assert run("backup", str(tmp_path / "copy.db"))[0] == DONE
    monkeypatch.setenv("MNEMIC_DB", str(tmp_path / "other.db"))
    assert run("import", str(exported))[1] == "stored 2 memories\n"
    assert len(run("list")[1].splitlines()) == 2
    monkeypatch.setenv("MNEMIC_DB", str(tmp_path / "copy.db"))
    assert len(run("list")[1].splitlines()) == 2


def test_keys_seal_and_are_changed(run, monkeypatch, place):
    old, new = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (1, 2))
    monkeypatch.setenv("MNEMIC_KEY", old)
    (sealed,) = added(run, "the door code is 4711", "--sensitive")
    assert "4711" not in run("list")[1]
    assert "4711" in run("get", sealed)[1]
    assert b"4711" not in place.read_bytes()
    monkeypatch.setenv("MNEMIC_NEW_KEY", new)
    assert run("rekey")[0] == DONE
    monkeypatch.setenv("MNEMIC_KEY", new)
    assert "4711" in run("get", sealed)[1]
    monkeypatch.setenv("MNEMIC_KEY", "not base64!")
    code, _, error = run("list")
    assert (code, "MNEMIC_KEY" in error) == (FAILED, True)


def test_damage_is_told_by_the_exit_code(run, place):
    added(run, "one")
    assert run("verify")[:2] == (DONE, "1 memories, 1 vectors: no problem\n")
    place.write_bytes(b"no database at all" * 100)
    for verb in (["verify"], ["list"], ["doctor"]):
        code, _, error = run(*verb)
        assert code == FAILED, verb
        assert error.count("\n") <= 1


def test_what_a_terminal_would_obey_is_spelled_out(run):
    added(run, stdin="red \x1b[31m back \u202e \x07 \x9b2J end")
    for verb in (["list"], ["search", "red"], ["timeline"], ["context", "red"], ["list", "--json"]):
        shown = run(*verb)[1]
        assert "red" in shown, verb
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown.replace("\t", "")), verb
    assert printable("a\nb\tc") == "a\nb\\u0009c"


def test_a_place_that_cannot_be_used_is_an_error_of_one_sentence(run, monkeypatch, tmp_path):
    monkeypatch.setenv("MNEMIC_DB", str(tmp_path / "no" / "folder" / "memory.db"))
    code, _, error = run("list")
    assert code in {FAILED, BUSY}
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_the_file_is_in_the_users_own_folder_unless_named(run, monkeypatch, tmp_path):
    monkeypatch.delenv("MNEMIC_DB")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    added(run, "one")
    folder = tmp_path / "data" / "mnemic"
    assert (folder / "memory.db").exists()
    assert folder.stat().st_mode & 0o077 == 0


def test_a_user_without_a_home_is_told_to_name_a_file(run, monkeypatch, tmp_path):
    for name in ("MNEMIC_DB", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user that has none
    monkeypatch.chdir(tmp_path)
    code, _, error = run("list")
    assert (code, error.count("\n")) == (FAILED, 1)
    assert "name a file by --db or MNEMIC_DB" in error
    assert not list(tmp_path.iterdir())


def test_the_model_is_the_one_asked_for_or_that_of_the_file(run, place, monkeypatch, tmp_path):
    small_package(tmp_path, monkeypatch)
    added(run, "tea at noon")
    assert Memory.model_of(place).name.startswith("all-MiniLM")  # of a new file the first one
    added(run, "anna moved to oslo", "--db", other := tmp_path / "other.db", "--embedder", "minilm")
    assert run("add", "tea", "--db", other, "--embedder", "multilingual")[0] == FAILED
    place.unlink()
    added(run, "anna moved to oslo", "--embedder", "multilingual")
    assert Memory.model_of(place).name.startswith("multilingual-e5-small")
    assert "anna moved" in run("search", "anna moved to oslo")[1]
    assert run("reembed")[0] == DONE
    assert Memory.model_of(place).name.startswith("multilingual-e5-small")
    code, _, error = run("search", "anna", "--embedder", "minilm")
    assert code == FAILED
    assert "--embedder chooses" in error
    assert run("reembed", "--embedder", "minilm")[0] == DONE
    assert Memory.model_of(place).name.startswith("all-MiniLM")
    assert "anna moved" in run("search", "where did anna go?")[1]
    monkeypatch.setenv("MNEMIC_EMBEDDER", "multilingual")
    assert run("search", "anna")[0] == FAILED
    monkeypatch.setenv("MNEMIC_EMBEDDER", "other")
    assert "MNEMIC_EMBEDDER must be minilm or multilingual" in run("search", "anna")[2]
