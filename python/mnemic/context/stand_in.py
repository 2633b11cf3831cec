"""Cutting until the core has it."""

from mnemic._core import estimate_tokens


def truncate(text: str, max_characters: int, /) -> str:
    """Return the head of a text, cut at a word if possible, with an ellipsis."""
    if len(text) <= max_characters:
        return text
    if max_characters < 1:
        return ""
    head = text[: max_characters - 1]
    word = head.rpartition(" ")[0]
    return f"{word or head}…"


def truncate_to_tokens(text: str, max_tokens: int, /) -> str:
    """Return the head of a text that is estimated at no more tokens."""
    if estimate_tokens(text) <= max_tokens:
        return text
    length = min(len(text), 4 * max_tokens)
    while length > 1 and estimate_tokens(text[: length - 1] + "…") > max_tokens:
        length -= 1
    return truncate(text, length)
