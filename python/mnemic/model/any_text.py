"""Any text as one that memories can hold, and any message as a query."""

from mnemic.model.validation import MAX_QUERY_LENGTH

_NO_CHARACTER = "\ufffd"


def storable_text(text: str) -> str:
    """Return a text with U+FFFD in place of what memories refuse: NUL, and half a surrogate pair.

    Halves that stand together become the character that they are. A text of white space, or of more
    than 10 MB, is still none that can be stored.
    """
    if text.isascii() and "\0" not in text:
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", _NO_CHARACTER)


def query_text(message: str) -> str:
    """Return what to search for: of a long message the beginning, of a blank one "".

    Every other result is a query that all searches take. What memories refuse becomes a space, and
    there is none around it.
    """
    return storable_text(message).replace(_NO_CHARACTER, " ").strip()[:MAX_QUERY_LENGTH]
