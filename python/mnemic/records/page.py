"""HTML of records for notebooks: tables without scripts, all texts escaped."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mnemic.records.lines import HIDDEN, READ_PER_COLUMN, cut, entry_of, row_of
from mnemic.records.plain import plain
from mnemic.records.secrets import without_passwords

MAX_ROWS = 100
"""Items of a list that are shown."""

WIDTH = 240
"""Columns of a content; the rest is cut."""

_TABLE = '<table style="text-align: left">'


def list_html(items: Sequence[Any], title: str) -> str:
    """Return a table of memories or hits under the one line that describes their list."""
    rows = [_row(at, item) for at, item in enumerate(items[:MAX_ROWS], start=1)]
    more = len(items) - len(rows)
    scored = bool(items) and hasattr(items[0], "score")
    head = ["#", *(["score"] if scored else []), "content", "user", "type", "created", "id"]
    return (
        f"<div><p>{escaped(title)}</p>{_TABLE}<thead>{_line(head, 'th')}</thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{f'<p>and {more} more</p>' if more else ''}</div>"
    )


def entry_html(title: str, entry: Any) -> str:
    """Return a table of the fields of a memory that are not as by default."""
    shown = [
        [name, HIDDEN if value == HIDDEN else _shown(getattr(entry, name))]
        for name, value in entry.__rich_repr__()
    ]
    rows = "".join(_line(cells, "td") for cells in shown)
    return f"<div><p>{escaped(title)}</p>{_TABLE}<tbody>{rows}</tbody></table></div>"


def escaped(text: str) -> str:
    """Return a text on one line as HTML: without markup, control and invisible characters."""
    return html.escape(cut(text, max(len(text), 1) * 2))


def _row(at: int, item: Any) -> str:
    entry = entry_of(item)
    created = entry.created_at.isoformat(" ", "seconds")
    return _line([*row_of(item, at, WIDTH), created, str(entry.id)], "td")


def _line(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escaped(cell)}</{tag}>' for cell in cells)}</tr>"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else _text(plain(value))
    head = text[: 2 * WIDTH * READ_PER_COLUMN]  # a password may stand across the cut
    return cut(without_passwords(head), WIDTH)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
