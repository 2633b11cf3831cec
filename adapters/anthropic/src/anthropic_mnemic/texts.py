"""What the memory tool says of files and directories, in the words that Claude knows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from anthropic.lib.tools import ToolError

_MOST_COMPARED = 10_000_000  # characters, to name the lines of what occurs several times


def numbered(shown: str, text: str, view_range: Sequence[int] | None) -> str:
    """Return the lines of a file, or of a range: the first is 1, and an end of -1 the last."""
    lines = text.split("\n")
    if len(lines) > 999_999:  # noqa: PLR2004 - their numbers have six digits
        raise ToolError(f"File {shown} exceeds maximum line limit of 999,999 lines.")
    first, last = view_range if view_range and len(view_range) == 2 else (1, -1)  # noqa: PLR2004
    start, end = max(1, first) - 1, len(lines) if last == -1 else last
    return f"Here's the content of {shown} with line numbers:\n" + _lines(lines, start, end)


def listed(shown: str, files: Mapping[str, str]) -> str:
    """Return two levels of a directory by name, with sizes; that of a directory is a sum.

    Args:
        shown: The directory as it was asked for.
        files: Text of each file, by its path below it.
    """
    sizes = Counter({shown: 0})
    for path, text in files.items():
        names = path.split("/")
        for depth in range(min(2, len(names)) + 1):
            if any(name.startswith(".") for name in names[:depth]):
                break
            end = "/" if 0 < depth < len(names) else ""
            sizes["/".join([shown, *names[:depth]]) + end] += len(text.encode())
    lines = [f"{_size(sizes[name])}\t{name}" for name in sorted(sizes, key=lambda n: n.split("/"))]
    head = "Here're the files and directories up to 2 levels deep in"
    return "\n".join([f"{head} {shown}, excluding hidden items:", *lines])


def replaced(shown: str, text: str, old: str, new: str) -> tuple[str, str]:
    """Return a text with its only occurrence of another replaced, and the lines around it."""
    if old not in text:
        why = f", old_str `{old}` did not appear verbatim in {shown}."
        raise ToolError(f"No replacement was performed{why}")
    most = _MOST_COMPARED // (len(old) + 1) + 1
    lines = list(islice(_lines_with(text, old), most))
    if text.count(old) > 1:
        why = f". Multiple occurrences of old_str `{old}` in lines: {', '.join(map(str, lines))}"
        raise ToolError(f"No replacement was performed{why}. Please ensure it is unique")
    changed = text.replace(old, new)
    return changed, _lines(changed.split("\n"), max(0, lines[0] - 3), lines[0] + 2)


def inserted(text: str, line: int, new: str) -> str:
    """Return a text with another behind one of its lines; 0 is before the first."""
    lines = text.removesuffix("\n").split("\n") if text else []
    if not 0 <= line <= len(lines):
        why = f"{line}. It should be within the range [0, {len(lines)}]."
        raise ToolError(f"Invalid `insert_line` parameter: {why}")
    lines.insert(line, new.rstrip("\n"))
    return "\n".join(lines).removesuffix("\n") + "\n"


def _lines_with(text: str, part: str) -> Iterator[int]:
    """Yield the line of each occurrence of a part, also where two of them overlap."""
    line, before, at = 1, 0, text.find(part)  # a regular expression can take minutes
    while at >= 0:
        line, before = line + text.count("\n", before, at), at
        yield line
        at = text.find(part, at + 1)


def _lines(lines: Sequence[str], start: int, end: int) -> str:
    return "\n".join(f"{at:6}\t{line}" for at, line in enumerate(lines[start:end], start + 1))


def _size(size: float, units: str = "BKMG") -> str:
    if size >= 1024 and units[1:]:  # noqa: PLR2004 - a unit is so many of the one before
        return _size(size / 1024, units[1:])
    return f"{size:.{int(size != int(size))}f}{units[0]}"
