"""Records as notebooks, terminals and pandas show them: HTML, tables of rich, data frames."""

import html
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from mnemic.errors import MissingExtraError
from mnemic.records.lines import HIDDEN, READ_PER_COLUMN, cut, entry_of, row_of, short_id
from mnemic.records.plain import plain
from mnemic.records.secrets import without_passwords

if TYPE_CHECKING:
    from rich.table import Table


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


def rich_table(items: Sequence[Any], title: str) -> "Table":
    """Return a table of memories or hits; texts are not read as markup."""
    from rich.table import Table  # noqa: PLC0415 - the caller's package
    from rich.text import Text  # noqa: PLC0415 - as above

    scored = bool(items) and hasattr(items[0], "score")
    table = Table(title=Text(title), title_justify="left")
    table.add_column("#", justify="right")
    if scored:
        table.add_column("score", justify="right")
    for name in ("content", "user", "type", "created", "id"):
        table.add_column(name)
    for at, item in enumerate(items, start=1):
        table.add_row(*map(Text, _cells(at, item)))
    return table


def _cells(at: int, item: Any) -> list[str]:
    entry = entry_of(item)
    return [*row_of(item, at), f"{entry.created_at:%Y-%m-%d %H:%M}", short_id(entry.id)]


_PARTS = ("components", "scores")
"""Fields of hits with the parts of the score: a column for each part."""

_TIME = "datetime64[us, UTC]"
_DTYPES = {
    "created_at": _TIME,
    "updated_at": _TIME,
    "last_accessed_at": _TIME,
    "forgotten_at": _TIME,
    "expires_at": _TIME,
    "score": "float64",
    "similarity": "float64",
    "importance": "float64",
    "position": "Int64",  # with missing values
}
"""Types of columns whose values may be missing, or be all None."""


def frame_of(items: Sequence[Any], hit_fields: Sequence[str], entry_fields: Sequence[str]) -> Any:
    """Return a data frame with one row for each item.

    Args:
        items: Memories or hits.
        hit_fields: The first columns: fields of the hits; none for memories.
        entry_fields: The columns after them: fields of the memories.

    Raises:
        MissingExtraError: If pandas is not installed.
    """
    try:
        pd = import_module("pandas")
    except ImportError as error:
        raise MissingExtraError(
            "to_pandas() needs pandas 2 or newer, which is not installed: pip install pandas"
        ) from error
    memories = [entry_of(item) for item in items]
    columns = {name: [getattr(item, name) for item in items] for name in hit_fields}
    columns |= {name: [getattr(memory, name) for memory in memories] for name in entry_fields}
    if not any(vector is not None for vector in columns["embedding"]):
        del columns["embedding"]
    made = {name: _series(pd, name, values) for name, values in columns.items()}
    parts = _parts(items).items()
    return pd.DataFrame(made | {name: pd.Series(part, dtype="float64") for name, part in parts})


def _series(pd: Any, name: str, values: list[Any]) -> Any:
    if name in _DTYPES:
        return pd.Series(values, dtype=_DTYPES[name])
    kept = values if name == "embedding" else [plain(value) for value in values]
    return pd.Series(kept) if kept else pd.Series(kept, dtype="object")


def _parts(items: Sequence[Any]) -> dict[str, list[Any]]:
    """Return a column for each part that any score has, in the order of the first that has it."""
    parts = [_parts_of(item) for item in items]
    names = dict.fromkeys(name for named in parts for name in named)
    return {name: [named.get(name) for named in parts] for name in names}


def _parts_of(item: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in _PARTS:
        given = getattr(item, field, None) or {}
        named = msgspec.structs.asdict(given) if isinstance(given, msgspec.Struct) else given
        found |= {f"{field}.{name}": value for name, value in named.items()}
    return found
