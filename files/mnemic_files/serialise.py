"""Writes a memory file in its one canonical form."""

from collections.abc import Iterator
from typing import Final

from mnemic.description import described
from mnemic.errors import InvalidArgumentError
from mnemic_files.errors import MemoryFileFormatError
from mnemic_files.front_matter import (
    MAX_CHARACTERS,
    yaml_text,
    yaml_time,
    yaml_value,
)
from mnemic_files.memory_file import MemoryFile
from mnemic_files.parse import KNOWN_KEYS

_DELIMITER: Final = "---\n"


def serialise_memory_file(file: MemoryFile) -> str:
    """Return the text of a memory file.

    Keys have a fixed order, further ones follow by name; each value takes one line, so none can
    begin a line with a delimiter. A blank line separates the body, which a line end completes.
    `parse_memory_file` returns an equal file.

    Args:
        file: The file.

    Raises:
        MemoryFileFormatError: If a field is missing, of the wrong type or out of range.
    """
    if not isinstance(file, MemoryFile):
        raise MemoryFileFormatError(f"file must be a MemoryFile, got {described(file)}")
    try:
        file.__post_init__()  # a copy by msgspec's replace, or a pickle, is not checked
    except InvalidArgumentError as error:
        raise MemoryFileFormatError(str(error)) from None
    front = "".join(_lines(file))
    if len(front) > MAX_CHARACTERS:
        raise MemoryFileFormatError(
            f"the front matter has {len(front)} characters; at most {MAX_CHARACTERS} are read"
        )
    return f"{_DELIMITER}{front}{_DELIMITER}\n{file.content}\n"


def _lines(file: MemoryFile) -> Iterator[str]:
    yield f"id: {yaml_text(file.id)}\n"
    yield f"created_at: {yaml_time(file.created_at)}\n"
    yield f"updated_at: {yaml_time(file.updated_at)}\n"
    yield f"version: {file.version}\n"
    yield f"scope: {yaml_text(file.scope)}\n"
    yield f"category: {yaml_text(file.category)}\n"
    if file.supersedes is not None:
        yield f"supersedes: {yaml_text(file.supersedes)}\n"
    if file.related:
        yield "related:\n"
    for edge in file.related:
        yield f"  - id: {yaml_text(edge.id)}\n"
        yield f"    relationship: {yaml_text(edge.relationship)}\n"
    yield f"session_id: {yaml_text(file.session_id)}\n"
    yield f"trigger: {yaml_text(file.trigger)}\n"
    for key in sorted(file.keys.keys() - KNOWN_KEYS):
        yield f"{yaml_text(key)}: {yaml_value(file.keys[key])}\n"
