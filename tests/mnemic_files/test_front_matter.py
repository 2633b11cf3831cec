"""The YAML between the delimiters: unknown keys, wrong values, bombs and deep nesting."""

from itertools import pairwise

import pytest

from mnemic_files import parse_memory_file, serialise_memory_file
from mnemic_files.errors import MemoryFileFormatError
from tests.support.memory_files import TEXT, with_line


def test_unknown_keys_are_kept_and_written_back():
    text = with_line("labels: [a, no, 2026-01-01, 1.5, null, {b: true}]")
    file = parse_memory_file(text)
    assert file.keys == {"labels": ["a", "no", "2026-01-01", 1.5, None, {"b": True}]}
    assert parse_memory_file(serialise_memory_file(file)) == file


@pytest.mark.requirement("T051", "C132")
@pytest.mark.parametrize(
    "line",
    [
        "version: 0",
        "version: two",
        "version: -1",
        "version: 1.5",
        "version: true",
        "version: 99999999999999999999",
        "scope: everyone",
        "scope:",
        "category: ''",
        "session_id:",
        "trigger: '  '",
        "id:",
        "id: ../test",
        "id: a/b",
        'id: "a\\\\b"',
        'id: "a\\0b"',
        "created_at: yesterday",
        "created_at: 2025-13-01T00:00:00Z",
        "created_at: 7",
        "created_at: 0001-01-01T00:00:00+09:00",
        "updated_at: [2026-01-01]",
        "related: {a: b}",
        "related: [mem_1]",
        "related: [{id: mem_1}]",
        "related: [{id: mem_1, relationship: [refines]}]",
        "supersedes: [mem_1]",
        "deep: [[[[[[[[[[1]]]]]]]]]]",
        "anchor: &a 1",
        "tag: !!python/object/apply:os.system [ls]",
        "tag: !!str 1",
        "alias: *a",
        "? [complex, key] : 1",
        "key: 'unclosed",
        "key: 1\nkey: 2",
        f"key: [{'1, ' * 9000}]",
        f"key: {'x' * 70_000}",
        'key: "\\ud800"',
        'key: "\\0"',
    ],
)
def test_invalid_values_raise_and_are_not_quoted(line):
    with pytest.raises(MemoryFileFormatError) as caught:
        parse_memory_file(with_line(line))
    message = str(caught.value)
    assert len(message) < 300
    assert message.isprintable()
    assert "make test" not in message


@pytest.mark.requirement("T051")
@pytest.mark.parametrize(
    "key", ["id", "created_at", "version", "scope", "category", "session_id", "trigger"]
)
def test_a_missing_key_is_named(key):
    text = "\n".join(line for line in TEXT.splitlines() if not line.startswith(f"{key}:"))
    with pytest.raises(MemoryFileFormatError, match=f"^{key} is missing"):
        parse_memory_file(text)


@pytest.mark.parametrize("text", ["---\n- a\n---\n", "---\n---\n", "---\na\n---\n", None, b"---\n"])
def test_a_front_matter_of_another_kind_raises(text):
    with pytest.raises(MemoryFileFormatError):
        parse_memory_file(text)


@pytest.mark.requirement("C132")
def test_a_bomb_is_refused_before_it_grows():
    levels = [
        f"{one}: &{one} [{', '.join([f'*{other}'] * 9)}]" for other, one in pairwise("abcdefghi")
    ]
    bomb = "\n".join(["a: &a [lol]", *levels])
    with pytest.raises(MemoryFileFormatError, match="anchor or an alias"):
        parse_memory_file(TEXT.replace("version", f"{bomb}\nversion"))


@pytest.mark.parametrize("depth", [9, 1_000, 30_000])
def test_deep_nesting_is_refused(depth):
    with pytest.raises(MemoryFileFormatError):
        parse_memory_file(with_line("deep: " + "[" * depth))
