"""The verb forget: it deletes for good, and prints a receipt."""

import argparse
import time
from datetime import UTC, datetime
from typing import Any

from mnemic import Memory
from mnemic.cli.call import Call, declare_filters, filters_of
from mnemic.cli.output import note
from mnemic.cli.place import shown
from mnemic.cli.reading import PAGE, entries_of, show
from mnemic.errors import InvalidArgumentError
from mnemic.model import DeleteResult

_ERASE_SECONDS = 30.0
_PAUSE_SECONDS = 0.2


def declare_forget(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of forget."""
    parser.add_argument("id", nargs="*", help="ids of memories")
    declare_filters(parser)
    parser.add_argument("--everything", action="store_true", help="all memories of the user")
    parser.add_argument("--keep", action="store_true", help="can be restored for 90 days")
    parser.add_argument("--dry-run", action="store_true", help="show what would go, and keep it")


def forget(call: Call) -> int:
    """Delete memories; return 1 if their bytes are not gone though the store could say so."""
    given = call.given
    filters = filters_of(given)
    if bool(given.id) + bool(filters) + given.everything != 1:
        raise InvalidArgumentError("name ids, or --tag and --type, or --everything")
    memory = call.stored(track_access=False)
    if given.dry_run:
        found = (
            memory.get_many(given.id, **call.scope)
            if given.id
            else list(entries_of(call, memory, limit=PAGE))
        )
        show(call, found)
        note(f"would forget {len(found)}; nothing was changed")
        return 0
    permanent = not given.keep
    deleted = (
        memory.delete_many(given.id, permanent=permanent, **call.scope)
        if given.id
        else memory.delete_all(filters=filters, permanent=permanent, **call.scope)
    )
    receipt: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "place": shown(call.place),
        "forgotten": int(deleted),
        "erased": _erase(memory, deleted) if permanent and deleted else None,
        "hint": deleted.hint,
    }
    _print(call, receipt)
    return int(receipt["erased"] is False)


def _erase(memory: Memory, deleted: DeleteResult) -> bool | None:
    """Wait until the bytes are gone, where the store can know; return whether they are."""
    erased = deleted.erased
    end = time.monotonic() + _ERASE_SECONDS
    while erased is False and time.monotonic() < end:
        time.sleep(_PAUSE_SECONDS)
        erased = memory.erase_pending()
    return erased


def _print(call: Call, receipt: dict[str, Any]) -> None:
    if call.out.is_json:
        call.out.json(receipt)
        return
    states = {
        True: "their bytes are erased from the file and its log",
        False: "a reader still uses their bytes; they go when it ends, or by the next forget",
        None: "they can be restored" if call.given.keep else "the store cannot tell about bytes",
    }
    state = states[receipt["erased"]] if receipt["forgotten"] else "nothing was there"
    call.out.line(f"{receipt['at']} forgot {receipt['forgotten']} of {receipt['place']}: {state}")
    if receipt["hint"] is not None:
        note(receipt["hint"])
