"""Notes in Markdown."""

import os
import sys
from pathlib import Path

import pytest

from mnemic.errors import SourceError
from mnemic.importers.cleaning import NO_TEXT
from mnemic.importers.markdown import HUGE
from mnemic.importers.text_files import LINKS, MAX_LINE, OTHERS


def test_notes_are_memories_with_the_fields_of_their_front_matter(bring, tmp_path):
    folder = tmp_path / "notes"
    (folder / "trips").mkdir(parents=True)
    (folder / ".obsidian").mkdir()
    (folder / ".obsidian" / "hidden.md").write_text("hidden")
    (folder / "plain.md").write_text("# Plain\n\nNo front matter\n")
    (folder / "trips" / "rome.md").write_text(
        "---\ntitle: Rome\ntags: [ferry, 'noon']\ncreated: 2026-05-03\nuser: ana\n---\n\nAt noon\n"
    )
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "empty.md").write_text("---\ntitle: x\n---\n")
    report, stored = bring("markdown", folder)
    assert set(stored) == {"# Plain\n\nNo front matter", "At noon"}
    rome = stored["At noon"]
    assert (rome.user_id, rome.tags) == ("ana", ("ferry", "noon"))
    assert f"{rome.created_at:%F}" == "2026-05-03"
    assert rome.metadata == {"title": "Rome", "path": "trips/rome.md"}
    assert rome.message_id == "trips/rome.md"
    assert report.lost == {OTHERS: 1, NO_TEXT: 1}


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_are_not_followed_and_pipes_not_opened(check, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (tmp_path / "secret.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")
    with (folder / "huge.md").open("w") as file:
        file.truncate(2 * MAX_LINE)
    report = check("markdown", folder)
    assert report.found == 0
    assert report.lost == {LINKS: 2, OTHERS: 1, HUGE: 1}
    with pytest.raises(SourceError, match="no regular file"):
        check("markdown", folder / "pipe.md")


def test_a_note_that_is_too_large_is_counted_also_alone(check, tmp_path):
    with (tmp_path / "huge.md").open("w") as file:
        file.truncate(2 * MAX_LINE)
    report = check("markdown", tmp_path / "huge.md")
    assert (report.found, report.lost) == (0, {HUGE: 1})


def test_a_note_may_be_of_any_year(check, tmp_path):
    (tmp_path / "note.md").write_text("x")
    os.utime(tmp_path / "note.md", (0, 10**12))
    assert check("markdown", tmp_path).found == 1


@pytest.mark.parametrize("kind", ["markdown", "basic-memory"])
@pytest.mark.parametrize(
    "text",
    [
        "- " + "[[" * 500_000,
        "- [" + " " * 500_000 + "]",
        "#" * 500_000,
        "---\na: x" + " " * 500_000 + "y\n---\nz",
        "---\na: x" + " #" * 250_000 + "\n---\nz",
        "---\n" + "- " * 250_000 + "\n---\nz",
        "---\n" * 100_000,
        "---" + " " * 500_000,
        "- [x" + "]" * 500_000,
        "---\na:\n" + "- b\n" * 250_000 + "---\nz",
    ],
)
def test_hostile_lines_take_no_longer_than_others(check, tmp_path, kind, text):
    path = tmp_path / "note.md"
    path.write_text(text)
    assert check(kind, path).found <= 1  # squares of the lengths would take the time of a test


@pytest.mark.skipif(sys.platform == "win32", reason="paths are short there")
def test_folders_may_be_nested_deeper_than_calls(check, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(1500):
        os.mkdir("d")  # noqa: PTH102 - the path would be too long
        os.chdir("d")
    Path("deep.md").write_text("deep")
    try:
        assert check("markdown", tmp_path).found == 1
        with pytest.raises(SourceError, match=r"there is no storage\.sqlite"):
            check("mem0", tmp_path)
    finally:  # what clears up after tests calls itself for each folder
        Path("deep.md").unlink()
        for _ in range(1500):
            os.chdir("..")
            os.rmdir("d")  # noqa: PTH106 - as above
