"""Any text as one that memories can hold, as a query, and as an id."""

from hashlib import sha1
from uuid import UUID

from mnemic.model.validation import MAX_QUERY_LENGTH, of_kind
from mnemic.reporting.near_names import checks_arguments

_NO_CHARACTER = "\ufffd"


@checks_arguments
def storable_text(text: str) -> str:
    """Return a text without what memories refuse: NUL becomes a space, half a character U+FFFD.

    Two halves that make a surrogate pair become the character. A text of white space alone, or of
    more than 10 MB, is still none that can be stored.

    Args:
        text: Any text.

    Raises:
        InvalidArgumentError: If it is no text.
    """
    without_nul = of_kind("text", str, "a str", text).replace("\0", " ")
    if text.isascii():
        return without_nul
    return without_nul.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@checks_arguments
def query_text(message: str) -> str:
    """Return what to search for: of a long message the beginning, of a blank one "".

    Every other result is a query that all searches take. What memories refuse becomes a space, and
    there is none around it.

    Args:
        message: Any text, of any length.

    Raises:
        InvalidArgumentError: If it is no text.
    """
    asked = storable_text(message).replace(_NO_CHARACTER, " ").strip()
    return asked[:MAX_QUERY_LENGTH].rstrip()


@checks_arguments
def named_id(namespace: UUID, name: str) -> UUID:
    """Return the id of a memory that has a name elsewhere: as `uuid.uuid5`, of any text.

    Args:
        namespace: A UUID that stands for where the name belongs.
        name: The name.

    Raises:
        InvalidArgumentError: If they are of other types.
    """
    own = of_kind("namespace", UUID, "a UUID", namespace).bytes
    named = own + of_kind("name", str, "a str", name).encode("utf-8", "surrogatepass")
    return UUID(bytes=sha1(named, usedforsecurity=False).digest()[:16], version=5)
