"""Memory files: the documented format, its store, versions and errors."""

import os
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import MnemicError
from mnemic_files import (
    CATEGORIES,
    RELATIONSHIPS,
    MemoryDirectory,
    MemoryFile,
    MemoryFiles,
    RelatedFile,
    new_memory_id,
    parse_memory_file,
    serialise_memory_file,
)
from mnemic_files.errors import MemoryFileExistsError, MemoryFileNotFoundError
from tests.support.clock import HOUR, NOON
from tests.support.threads import run_together

DOCUMENTED = """---
id: mem_0001
created_at: 2025-02-22T10:00:00Z
updated_at: 2025-02-22T11:30:00Z
version: 2
scope: user
category: corrections
supersedes: mem_0000
related:
  - id: mem_0009
    relationship: refines
  - id: mem_0008
    relationship: relates-to
session_id: s-1
trigger: cadence
---
The port is 8080.

---
Not 80.
"""


def made(id_="mem_a", content="a fact", **fields):
    """Return a memory file of the repository."""
    given_fields = {
        "id": id_,
        "created_at": NOON,
        "scope": "repo",
        "category": "patterns",
        "session_id": "s",
        "trigger": "cadence",
        **fields,
    }
    return MemoryFile(content=content, **given_fields)


def ids(files):
    return [each.id for each in files]


@pytest.fixture
def both(tmp_path):
    return MemoryFiles(tmp_path / "repo", tmp_path / "user", clock=lambda: NOON)


@pytest.fixture
def repo(tmp_path):
    return MemoryDirectory(tmp_path / "repo", "repo", clock=lambda: NOON)


# The format


@pytest.mark.requirement("T050")
def test_the_documented_form_is_read():
    file = parse_memory_file(DOCUMENTED)
    assert file.id == "mem_0001"
    assert file.created_at == datetime(2025, 2, 22, 10, tzinfo=UTC)
    assert file.updated_at == datetime(2025, 2, 22, 11, 30, tzinfo=UTC)
    assert (file.version, file.scope, file.category) == (2, "user", "corrections")
    assert (file.supersedes, file.session_id, file.trigger) == ("mem_0000", "s-1", "cadence")
    assert file.related == (
        RelatedFile("mem_0009", "refines"),
        RelatedFile("mem_0008", "relates-to"),
    )
    assert file.content.strip() == "The port is 8080.\n\n---\nNot 80."


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1, max_size=40
)


NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=40
).filter(lambda text: text.strip() == text)


@pytest.mark.requirement("T050")
@given(
    content=TEXTS,
    session=NAMES,
    category=st.sampled_from(CATEGORIES) | st.just("anything: else"),
    supersedes=st.none() | st.just("mem_b"),
    edges=st.lists(st.sampled_from(RELATIONSHIPS), max_size=3),
    version=st.integers(1, 10**6),
)
def test_what_is_written_is_read_again(*, content, session, category, supersedes, edges, version):
    file = made(
        content=f"# title\n{content}\n---\nend",
        session_id=session,
        category=category,
        supersedes=supersedes,
        version=version,
        related=tuple(RelatedFile(f"mem_{n}", kind) for n, kind in enumerate(edges)),
        trigger="---",
    )
    text = serialise_memory_file(file)
    assert text.startswith("---\n")
    assert parse_memory_file(text) == file


@pytest.mark.requirement("T050", "C132")
@pytest.mark.parametrize("content", ["a\nb\n\nc", "---\na\n---", "\n\na", "a  \n", "  a", "…\t語"])
def test_a_content_keeps_its_lines(content):
    file = made(content=content)
    assert parse_memory_file(serialise_memory_file(file)).content == content


@pytest.mark.requirement("T051")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing front-matter delimiter"),
        ("a fact", "missing front-matter delimiter"),
        ("id: mem_a\n---\n", "missing front-matter delimiter"),
        ("---\nid: mem_a\n", "unclosed front-matter block"),
        ("---\nid: mem_a\n--\nbody", "unclosed front-matter block"),
    ],
)
def test_a_text_without_front_matter_is_a_typed_error(text, message):
    with pytest.raises(MnemicError, match=rf"^{message}"):
        parse_memory_file(text)


@pytest.mark.requirement("T051")
@pytest.mark.parametrize("field", ["id", "scope", "category", "session_id", "trigger"])
def test_a_missing_or_empty_field_is_a_typed_error(field):
    lines = DOCUMENTED.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(f"{field}:"))
    for line in (None, f"{field}:", f'{field}: ""'):
        text = "\n".join([*lines[:at], *([line] if line else []), *lines[at + 1 :]])
        with pytest.raises(MnemicError, match=field):
            parse_memory_file(text)


@pytest.mark.requirement("T051")
@pytest.mark.parametrize("version", ["0", "-1", "two", "1.5", "true"])
def test_a_version_below_one_is_a_typed_error(version):
    with pytest.raises(MnemicError, match="version"):
        parse_memory_file(DOCUMENTED.replace("version: 2", f"version: {version}"))


@pytest.mark.requirement("C132")
def test_a_reader_takes_what_editors_make_of_a_file():
    wanted = parse_memory_file(DOCUMENTED)
    dots = DOCUMENTED.replace("cadence\n---\n", "cadence\n...\n")
    for text in (
        "\ufeff" + DOCUMENTED,
        DOCUMENTED.replace("\n", "\r\n"),
        "\ufeff" + DOCUMENTED.replace("\n", "\r\n"),
        dots,
        DOCUMENTED.replace("---\n", "---  \n", 1),
        DOCUMENTED.replace("scope: user", 'scope: "user"').replace(
            "id: mem_0001", "id: 'mem_0001'"
        ),
    ):
        assert parse_memory_file(text) == wanted


@pytest.mark.requirement("C132")
def test_an_unknown_category_stays_as_text():
    text = DOCUMENTED.replace("category: corrections", "category: recipes")
    assert parse_memory_file(text).category == "recipes"


@pytest.mark.requirement("C132")
@pytest.mark.parametrize("date", ["yesterday", "2025-13-01T00:00:00Z", "7"])
def test_a_date_that_is_none_is_a_typed_error(date):
    with pytest.raises(MnemicError, match="created_at"):
        parse_memory_file(DOCUMENTED.replace("2025-02-22T10:00:00Z", date))


@pytest.mark.requirement("C132")
def test_a_front_matter_makes_no_objects(tmp_path):
    victim = tmp_path / "made"
    text = DOCUMENTED.replace(
        "trigger: cadence",
        f"trigger: !!python/object/apply:os.mkdir ['{victim}']",
    )
    with pytest.raises(MnemicError):
        parse_memory_file(text)
    assert not victim.exists()


@pytest.mark.requirement("C132")
def test_aliases_that_multiply_end_soon():
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    text = DOCUMENTED.replace("trigger: cadence", f"trigger: cadence\n{bomb}")
    try:
        assert len(repr(parse_memory_file(text))) < 10**6
    except MnemicError as error:
        assert len(str(error)) < 10_000  # noqa: PT017 - either is well


@pytest.mark.requirement("T051", "C132")
@given(st.text(max_size=200))
def test_any_text_is_a_file_or_a_typed_error(text):
    for each in (text, f"---\n{text}", f"---\n{text}\n---\n", DOCUMENTED.replace("s-1", text)):
        try:
            parse_memory_file(each)
        except MnemicError:
            continue


# The store


@pytest.mark.requirement("T052")
def test_an_unknown_id_is_not_found(both, repo):
    for files in (both, repo):
        with pytest.raises(MemoryFileNotFoundError, match="mem_unknown"):
            files.read("mem_unknown")
        assert files.list() == []


@pytest.mark.requirement("T053", "R329")
def test_files_of_both_scopes_are_written_read_and_listed(both):
    first, second = made("mem_a"), made("mem_b", scope="user")
    both.write(first)
    assert both.read("mem_a") == first
    with pytest.raises(MemoryFileExistsError, match="mem_a"):
        both.write(made("mem_a", "another"))
    assert both.read("mem_a") == first
    both.write(second)
    assert ids(both.list()) == ["mem_a", "mem_b"]
    assert ids(both.list(scope="user")) == ["mem_b"]


@pytest.mark.requirement("T053", "T050")
def test_files_are_their_owners_alone(both):
    path = Path(both.write(made("mem_a")))
    assert path.name == "mem_a.md"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o750
    assert parse_memory_file(path.read_text(encoding="utf-8")) == made("mem_a")


@pytest.mark.requirement("T054")
@pytest.mark.parametrize(
    "id_", ["../test", "a/b", "..", "a\\b", "/etc/passwd", "mem_a\0", "..\\test", "."]
)
def test_an_id_that_leads_out_of_the_directory_is_refused(both, repo, id_, tmp_path):
    (tmp_path / "test.md").write_text(DOCUMENTED, encoding="utf-8")
    for files in (both, repo):
        with pytest.raises(MnemicError):
            files.read(id_)
        with pytest.raises(MnemicError):
            files.write(made(id_))
    assert sorted(path.name for path in tmp_path.rglob("*.md")) == ["test.md"]


@pytest.mark.requirement("T054")
def test_an_empty_id_is_refused_by_name(both, repo):
    for files in (both, repo):
        with pytest.raises(MnemicError, match="empty"):
            files.read("")


@pytest.mark.requirement("T055", "R348")
def test_a_corrupt_file_is_left_out_of_the_list(both, tmp_path):
    both.write(made("mem_good"))
    folder = tmp_path / "repo"
    (folder / "mem_bad.md").write_text("no front matter", encoding="utf-8")
    (folder / "mem_bytes.md").write_bytes(b"---\n\xff\xfe\n---\n")
    (folder / "mem_empty.md").write_bytes(b"")
    (folder / "notes.txt").write_text(DOCUMENTED, encoding="utf-8")
    (folder / "mem_folder.md").mkdir()
    (folder / "deep").mkdir()
    (folder / "deep" / "mem_deep.md").write_text(DOCUMENTED, encoding="utf-8")
    assert ids(both.list()) == ["mem_good"]
    assert {problem.name for problem in both.problems()} >= {"mem_bad.md", "mem_bytes.md"}


@pytest.mark.requirement("T055")
def test_a_link_out_of_the_directory_is_not_followed_by_name_alone(repo, tmp_path):
    repo.write(made("mem_good"))
    (tmp_path / "repo" / "mem_gone.md").symlink_to(tmp_path / "missing.md")
    assert ids(repo.list()) == ["mem_good"]


@pytest.mark.requirement("C134")
def test_the_repositorys_file_stands_before_the_users(both):
    both.write(made("mem_a", "of the user", scope="user"))
    both.write(made("mem_a", "of the repository"))
    assert both.read("mem_a").content == "of the repository"
    assert [file.content for file in both.list()] == ["of the repository"]
    assert [problem.scope for problem in both.problems()] == ["user"]


@pytest.mark.requirement("C134")
def test_the_order_of_a_list_is_fixed(both):
    for name, hours in (("mem_c", 0), ("mem_a", 2), ("mem_b", 1), ("mem_d", 1)):
        both.write(made(name, created_at=NOON + hours * HOUR, scope="repo"))
    assert ids(both.list()) == ["mem_a", "mem_b", "mem_c", "mem_d"]
    assert ids(both.list(order="time")) == ["mem_c", "mem_b", "mem_d", "mem_a"]


@pytest.mark.requirement("C133")
def test_of_writers_of_one_id_one_wins_and_its_file_is_whole(repo, tmp_path):
    won, lock = [], threading.Lock()

    def writer(number):
        def work():
            try:
                repo.write(made("mem_a", f"content {number} " * 2000))
            except MemoryFileExistsError:
                return
            with lock:
                won.append(number)

        return work

    run_together(*[writer(number) for number in range(12)])
    (winner,) = won
    assert repo.read("mem_a").content.startswith(f"content {winner} ")
    assert [path.name for path in (tmp_path / "repo").iterdir()] == ["mem_a.md"]


@pytest.mark.requirement("C133")
def test_a_write_that_fails_leaves_nothing(repo, tmp_path, monkeypatch):
    repo.write(made("mem_a"))

    def refuse(*_args, **_kwargs):
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(MnemicError):
        repo.write(made("mem_b"))
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "repo").iterdir()] == ["mem_a.md"]
    repo.write(made("mem_b"))
    assert ids(repo.list()) == ["mem_a", "mem_b"]


@pytest.mark.requirement("T060")
def test_twenty_concurrent_writes_are_twenty_files(both):
    scopes = ["repo", "user"] * 10
    run_together(
        *[
            lambda n=n, scope=scope: both.write(made(f"mem_{n:02}", scope=scope))
            for n, scope in enumerate(scopes)
        ]
    )
    assert ids(both.list()) == [f"mem_{n:02}" for n in range(20)]


# Versions


@pytest.mark.requirement("T056")
def test_a_chain_is_oldest_first_and_its_end_is_the_latest(both):
    both.write(made("mem_v1"))
    both.write(made("mem_v2", supersedes="mem_v1", version=2))
    assert ids(both.version_chain("mem_v2")) == ["mem_v1", "mem_v2"]
    assert ids(both.version_chain("mem_v1")) == ["mem_v1"]
    assert both.latest_version("mem_v1").id == "mem_v2"
    assert both.latest_version("mem_v2").id == "mem_v2"


@pytest.mark.requirement("C135")
def test_a_chain_may_cross_the_scopes(both):
    both.write(made("mem_v1", scope="user"))
    both.write(made("mem_v2", supersedes="mem_v1", version=2))
    assert ids(both.version_chain("mem_v2")) == ["mem_v1", "mem_v2"]
    assert both.latest_version("mem_v1").id == "mem_v2"


@pytest.mark.requirement("T057")
def test_a_circle_of_versions_ends(both):
    both.write(made("mem_a", supersedes="mem_b"))
    both.write(made("mem_b", supersedes="mem_a"))
    with pytest.raises(MnemicError, match="cycle detected"):
        both.latest_version("mem_a")
    assert len(both.version_chain("mem_a", 5)) == 5
    assert len(both.version_chain("mem_a")) <= 100


@pytest.mark.requirement("T057")
def test_a_long_chain_is_cut_at_its_depth(both):
    for number in range(9):
        before = f"mem_{number - 1}" if number else None
        both.write(made(f"mem_{number}", supersedes=before, version=number + 1))
    assert ids(both.version_chain("mem_8", 5)) == [f"mem_{n}" for n in range(4, 9)]
    assert both.latest_version("mem_0").id == "mem_8"


@pytest.mark.requirement("T056")
def test_a_missing_predecessor_is_a_typed_error(both):
    both.write(made("mem_v2", supersedes="mem_v1", version=2))
    with pytest.raises(MnemicError, match="mem_v1"):
        both.version_chain("mem_v2")


@pytest.mark.requirement("C135")
def test_of_two_successors_the_newer_counts(both):
    both.write(made("mem_old"))
    both.write(made("mem_b", supersedes="mem_old", updated_at=NOON + HOUR))
    both.write(made("mem_a", supersedes="mem_old"))
    both.write(made("mem_c", supersedes="mem_old", updated_at=NOON + HOUR))
    assert both.latest_version("mem_old").id == "mem_b"


@pytest.mark.requirement("T058", "T053")
@pytest.mark.parametrize("scope", ["repo", "user"])
def test_a_new_version_is_one_more_and_stands_in_the_same_scope(both, scope):
    edges = (RelatedFile("mem_z", "refines"),)
    old = made("mem_v1", scope=scope, version=3, related=edges, category="corrections")
    both.write(old)
    new = both.new_version("mem_v1", "a better fact")
    assert (new.supersedes, new.version, new.scope) == ("mem_v1", 4, scope)
    assert (new.content, new.category, new.related) == ("a better fact", "corrections", edges)
    assert new.id != old.id
    assert both.read(new.id) == new
    assert both.read("mem_v1") == old
    assert both.latest_version("mem_v1") == new


@pytest.mark.requirement("T059")
def test_new_ids_have_the_documented_form():
    made_ids = {new_memory_id() for _ in range(100)}
    assert len(made_ids) == 100
    for each in made_ids:
        assert each.startswith("mem_")
        assert len(each) >= len("mem_") + 32
