"""Tables of the package rich. Only rich calls this, so that it is installed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mnemic.records.lines import entry_of, row_of, short_id

if TYPE_CHECKING:
    from rich.table import Table


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
