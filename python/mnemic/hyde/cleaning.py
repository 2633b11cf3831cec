"""Texts of conversations and of models without characters that no prompt needs."""

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # a colour or a movement of the cursor
    r"|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # a title or a link of the terminal
    r"|[ -/]*[0-~])?"  # any other sequence
)
_LINE_BREAK = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

_TOOL_NAMES = (
    "tool|tool_calls?|tool_use|tool_results?|tool_response|function_calls?|function_results?"
)
_TOOL_TAG = re.compile(rf"<(/?)({_TOOL_NAMES})(?:\s[^<>]*?)?(/?)>", re.IGNORECASE)


def clean(text: str) -> str:
    r"""Return a text that UTF-8 can express, without escape sequences and control characters.

    Line breaks of every kind become "\n", tabs stay, and a lone surrogate becomes a replacement
    character. Time is linear.
    """
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    text = _CONTROL.sub("", _LINE_BREAK.sub("\n", text))
    return _SURROGATE.sub(REPLACEMENT, text)


def without_tool_blocks(text: str) -> str:
    """Return a text without the blocks of tool calls and tool results, `<tool>…</tool>` and others.

    Blocks may hold further ones. A block that is not closed ends with the text; a closing tag
    without a block is removed. Time is linear.
    """
    if "<" not in text:
        return text
    kept: list[str] = []
    blocks = _OpenBlocks()
    end = 0
    for tag in _TOOL_TAG.finditer(text):
        if not blocks.names:
            kept.append(text[end : tag.start()])
        blocks.read(closes=bool(tag[1]), name=tag[2].lower(), is_empty=bool(tag[3]))
        end = tag.end()
    if not blocks.names:
        kept.append(text[end:])
    return "".join(kept)


class _OpenBlocks:
    """The blocks that are open at a place of a text, the outermost first."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._counts: dict[str, int] = {}

    def read(self, *, closes: bool, name: str, is_empty: bool) -> None:
        """Read a tag; a closing one closes all blocks within its own."""
        if not closes:
            if not is_empty:
                self.names.append(name)
                self._counts[name] = self._counts.get(name, 0) + 1
            return
        while self._counts.get(name):
            closed = self.names.pop()
            self._counts[closed] -= 1
            if closed == name:
                return
