"""Memory files are read tolerantly and written in one form."""

import logging
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic_files import (
    MemoryFile,
    RelatedFile,
    parse_memory_file,
    serialise_memory_file,
)
from mnemic_files.errors import MemoryFileFormatError
from tests.support.memory_files import NOON, TEXT, memory_file, with_line

FRONT, BODY = TEXT.split("---\n\n")


@pytest.mark.requirement("R329", "T050")
def test_a_file_is_read_with_all_its_fields():
    assert parse_memory_file(TEXT) == MemoryFile(
        id="mem_9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
        created_at=NOON,
        updated_at=datetime(2026, 5, 2, 8, 30, 0, 250_000, tzinfo=UTC),
        version=2,
        scope="repo",
        category="project-conventions",
        supersedes="mem_16fd2706-8baf-433b-82eb-8c7fada847da",
        related=(RelatedFile("mem_886313e1-3b8a-5372-9b90-0c9aee199e5d", "refines"),),
        session_id="session-7",
        trigger="cadence",
        content="# Tests\n\nThey run with `make test`.",
    )


@pytest.mark.requirement("C132")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeff" + TEXT, id="byte order mark"),
        pytest.param(TEXT.replace("\n", "\r\n"), id="line ends of Windows"),
        pytest.param("\ufeff" + TEXT.replace("\n", "\r\n"), id="both"),
        pytest.param(TEXT.replace("---\n\n", "...\n\n"), id="terminator of YAML"),
        pytest.param(TEXT.replace("---\n\n", "---\n"), id="no blank line"),
        pytest.param(TEXT.replace("---\n", "---  \n"), id="blanks after delimiters"),
        pytest.param(TEXT.removesuffix("\n"), id="no line end"),
        pytest.param(TEXT.replace("id: mem_9", 'id: "mem_9').replace("cb6d", 'cb6d"'), id="quotes"),
        pytest.param(TEXT.replace("version: 2", "version: '2'"), id="quoted number"),
        pytest.param(TEXT.replace("12:00:00Z", "12:00:00+00:00"), id="offset of zero"),
        pytest.param(TEXT.replace("12:00:00Z", "14:00:00+02:00"), id="another zone"),
        pytest.param(TEXT.replace("12:00:00Z", "12:00:00"), id="no zone"),
        pytest.param(TEXT.replace("T12:00:00Z", " 12:00:00"), id="blank in the time"),
        pytest.param(TEXT.replace(".25Z", ".250000000Z"), id="nanoseconds"),
        pytest.param(TEXT.replace("version", "# by hand\nversion"), id="comment"),
        pytest.param(
            TEXT.replace("  - id: mem_8", "- {id: mem_8").replace(
                "\n    relationship: refines", ", relationship: refines}"
            ),
            id="edges in braces",
        ),
    ],
)
def test_hands_and_other_writers_change_nothing(text):
    assert parse_memory_file(text) == parse_memory_file(TEXT)


@pytest.mark.requirement("T051")
@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("no front matter", "missing front-matter delimiter"),
        ("", "missing front-matter delimiter"),
        ("\n" + TEXT, "missing front-matter delimiter"),
        ("----\n" + TEXT, "missing front-matter delimiter"),
        (FRONT, "unclosed front-matter block"),
        ("---\n", "unclosed front-matter block"),
        ("---\nid: mem_a\n--\nbody", "unclosed front-matter block"),
        ("---", "missing front-matter delimiter"),
    ],
)
def test_a_file_without_delimiters_has_an_error_of_its_own(text, beginning):
    with pytest.raises(MemoryFileFormatError) as caught:
        parse_memory_file(text, name="a.md")
    assert str(caught.value).startswith(beginning)
    assert str(caught.value).endswith("(in a.md)")


@pytest.mark.requirement("C132", "T050")
@pytest.mark.parametrize("content", ["---\nid: other\n---\n\n...\n", "\n\na", "  a  \n", "…\t語"])
def test_a_body_keeps_its_lines_delimiters_among_them(content):
    written = serialise_memory_file(memory_file(content=content))
    assert parse_memory_file(written).content == content


@pytest.mark.requirement("C132")
@pytest.mark.parametrize("line", ["category: recipes", "category: 12", 'category: "no"'])
def test_an_unknown_category_is_kept_with_a_warning(line, caplog):
    with caplog.at_level(logging.WARNING, "mnemic_files"):
        file = parse_memory_file(with_line(line))
    assert file.category == line.split(": ")[1].strip('"')
    assert "unknown category" in caplog.text
    assert "recipes" not in caplog.text


@pytest.mark.parametrize("hidden", ["\0", "\ud800"])
def test_what_is_no_text_raises(hidden):
    with pytest.raises(MemoryFileFormatError):
        parse_memory_file(TEXT + hidden)


NAMES = st.text(st.characters(blacklist_categories=("Cc", "Cs")), min_size=1, max_size=20).filter(
    lambda text: text.strip() and text.isprintable() and text == text.strip()
)
IDS = NAMES.filter(
    lambda text: not {"/", "\\"} & set(text) and ".." not in text and not text.startswith(".")
)
TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS.filter(lambda key: 0 < len(key) < 50), inner, max_size=3)
    ),
    max_leaves=5,
)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
KEYS = TEXTS.filter(lambda key: 0 < len(key) < 50)


@pytest.mark.requirement("T050")
@given(
    id=IDS,
    created_at=TIMES,
    updated_at=TIMES,
    version=st.integers(1, 10**15 - 1),
    scope=st.sampled_from(["repo", "user"]),
    category=NAMES,
    supersedes=st.none() | NAMES,
    related=st.lists(st.builds(RelatedFile, NAMES, NAMES), max_size=3).map(tuple),
    session_id=NAMES,
    trigger=NAMES,
    content=TEXTS.filter(lambda text: not text.isspace()),
    keys=st.dictionaries(KEYS, JSON, max_size=3).filter(
        lambda keys: not {"id", "version", "related", "scope"} & keys.keys()
    ),
)
def test_what_is_written_is_read_again(**fields):
    file = MemoryFile(**fields)
    written = serialise_memory_file(file)
    assert parse_memory_file(written) == file
    assert serialise_memory_file(parse_memory_file(written)) == written
    inner = written.removeprefix("---\n").split("\n---\n")[0]
    assert not any(line.startswith("---") for line in inner.split("\n"))


@pytest.mark.requirement("T051", "C132")
@given(st.text(), st.text())
def test_any_text_is_read_or_refused(front, body):
    for text in (front, f"---\n{front}\n---\n{body}", with_line(f"key: {front}")):
        try:
            parse_memory_file(text)
        except MemoryFileFormatError as error:
            assert str(error).isprintable()  # noqa: PT017 - either may happen
