"""Ids of memory files, and the ids of the memories that are made of them."""

from typing import Final
from uuid import UUID, uuid4, uuid5

from mnemic.errors import InvalidArgumentError
from mnemic_files.inside import described, is_word, validation

PREFIX: Final = "mem_"
SUFFIX: Final = ".md"
MAX_ID_BYTES: Final = 200
"""File systems allow names of 255 bytes."""

_NAMESPACE: Final = UUID("7d2c7d2e-5a0f-5f43-9a55-6c3b8f1b7e10")
"""Namespace of the ids of memories whose files have ids of another form."""

_SEPARATORS: Final = ("/", "\\")


def new_memory_id() -> str:
    """Return a new id of a memory file: `mem_` and a random UUID of version 4."""
    return f"{PREFIX}{uuid4()}"


def checked_id(given: object) -> str:
    """Return an id that names a file inside its directory.

    Raises:
        InvalidArgumentError: If it is empty, too long, or could name something else.
    """
    if not isinstance(given, str):
        raise InvalidArgumentError(f"id must be a str, got {described(given)}")
    problem = id_problem(given)
    if problem is not None:
        raise InvalidArgumentError(
            f"id {problem}; an id is a file's name without {SUFFIX}, such as mem_ and a UUID"
        )
    return given


def id_problem(given: str) -> str | None:
    """Return why a text is no id; None if it is one."""
    if not given:
        return "is empty"
    if any(separator in given for separator in _SEPARATORS):
        return "contains a path separator"
    if ".." in given or given.startswith("."):
        return "leads out of its directory, or names a hidden file"
    if (
        validation.lone_surrogate(given) is not None
        or not given.isprintable()
        or given != given.strip()
    ):
        return "contains a control character, an outer space, or half a character"
    if len(given.encode()) > MAX_ID_BYTES:
        return f"is longer than {MAX_ID_BYTES} bytes"
    return None


def file_name(file_id: str) -> str:
    """Return the name of the file with an id."""
    return file_id + SUFFIX


def entry_id(file_id: str) -> UUID:
    """Return the id of the memory that a file becomes.

    It is the UUID in an id of the form `mem_<UUID>`, in lower case with hyphens; for any other
    form a UUID of version 5, which is the same each time.
    """
    try:
        given = UUID(file_id.removeprefix(PREFIX))
    except ValueError:
        return uuid5(_NAMESPACE, file_id)
    return given if file_id == file_id_of(given) else uuid5(_NAMESPACE, file_id)


def file_id_of(given: UUID) -> str:
    """Return the id of the file of a memory that was not made of one."""
    return f"{PREFIX}{given}"


def shown_id(file_id: str) -> str:
    """Return an id for messages: others than plain words are described."""
    return file_id if is_word(file_id) or _is_plain(file_id) else described(file_id)


def _is_plain(file_id: str) -> bool:
    return len(file_id) <= MAX_ID_BYTES and file_id.isascii() and file_id.isprintable()
