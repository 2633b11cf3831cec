"""Verbs that move memories: export, import, backup."""

import argparse
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mnemic.cli.call import Call
from mnemic.cli.output import note
from mnemic.errors import ExportFormatError, InvalidArgumentError
from mnemic.importers.kinds import KINDS
from mnemic.model import MemoryEntry

if TYPE_CHECKING:
    from mnemic import Memory
    from mnemic.importers.importing import ImportCounts

_OWN: Final = "mnemic"
_SHOWN_USERS: Final = 20


def declare_export(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of export."""
    parser.add_argument("file", nargs="?", default="-", help="a new file; - or none is stdout")
    parser.add_argument(
        "--to",
        choices=("jsonl", "csv", "markdown"),
        default="jsonl",
        help="jsonl has everything, csv and markdown what searches can find; markdown is a folder",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    parser.add_argument("--unseal", action="store_true", help="write sealed memories in plain text")
    parser.add_argument("--embeddings", action="store_true", help="with their vectors (jsonl)")


def export(call: Call) -> None:
    """Write all memories to a file or a folder."""
    given = call.given
    if given.embeddings and given.to != "jsonl":
        raise InvalidArgumentError(f"--embeddings goes with jsonl; {given.to} has no vectors")
    if given.file == "-":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as a file has it, whatever the terminal
    elif not given.overwrite and _is_taken(Path(given.file), given.to):
        raise InvalidArgumentError(f"{given.file} exists; choose another name, or --overwrite")
    written = _WRITERS[given.to](call)
    note(f"{written} memories written")


def _is_taken(path: Path, form: str) -> bool:
    return path.exists() and not (form == "markdown" and path.is_dir())


def _export_lines(call: Call) -> int:
    given = call.given
    return call.stored(track_access=False).export(
        sys.stdout if given.file == "-" else Path(given.file),
        overwrite=given.overwrite,
        unseal=given.unseal,
        embeddings=given.embeddings,
        progress=call.out.progress,
        **call.scope,
    )


def _memories(call: Call) -> Iterator[MemoryEntry]:
    from mnemic.importers.exporting import memories_of  # noqa: PLC0415 - loads csv

    return memories_of(call.stored(track_access=False), call.scope, unseal=call.given.unseal)


def _export_table(call: Call) -> int:
    from mnemic.importers import exporting  # noqa: PLC0415 - as above

    given = call.given
    entries = _memories(call)
    if given.file == "-":
        return exporting.write_table(entries, sys.stdout)
    with exporting.new_text(Path(given.file), overwrite=given.overwrite) as file:
        return exporting.write_table(entries, file)


def _export_notes(call: Call) -> int:
    from mnemic.importers import exporting  # noqa: PLC0415 - as above

    given = call.given
    if given.file == "-" or given.all_users:
        raise InvalidArgumentError("markdown takes the name of a folder, and one user's memories")
    entries = _memories(call)
    with call.out.counting("export") as report:
        return exporting.write_notes(
            entries, Path(given.file), overwrite=given.overwrite, report=report
        )


_WRITERS: Final[dict[str, Callable[[Call], int]]] = {
    "jsonl": _export_lines,
    "csv": _export_table,
    "markdown": _export_notes,
}


def declare_import(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of import."""
    parser.add_argument("file", type=Path, help="a file, or a folder of --from")
    parser.add_argument(
        "--from",
        dest="kind",
        choices=(_OWN, *KINDS),
        default=_OWN,
        metavar="KIND",
        help="; ".join(
            [f"{_OWN}: an export of it (if left out)"]
            + [f"{name}: {kind.summary}" for name, kind in KINDS.items()]
        ),
    )
    parser.add_argument("--dry-run", action="store_true", help="read and count, and store nothing")
    parser.add_argument("--user-field", metavar="NAME", help="field that has the user; '' is none")
    parser.add_argument("--text-field", metavar="NAME", help="field that has the text")


def import_(call: Call) -> None:
    """Store the memories of a file or a folder."""
    given = call.given
    if given.kind != _OWN:
        _import_other(call)
        return
    if given.dry_run or given.user_field is not None or given.text_field is not None:
        raise InvalidArgumentError(
            "an export of mnemic is checked before anything of it is stored, and names its users; "
            "--dry-run and the fields go with --from"
        )
    try:
        done = call.memory().import_(given.file, progress=call.out.progress)
    except ExportFormatError:
        note("if it is no export of mnemic, --from names what it is")
        raise
    call.out.result(done.to_dict(), f"stored {done.stored} memories")


def _import_other(call: Call) -> None:
    from mnemic.importers.importing import Import  # noqa: PLC0415 - reads other libraries
    from mnemic.importers.record import Chosen  # noqa: PLC0415 - as above

    given = call.given
    if _is_target(call):
        raise InvalidArgumentError(f"{given.file} is the memory that would be written")
    user = None if given.all_users else call.user
    job = Import(given.kind, given.file, Chosen(given.text_field, given.user_field, user))
    try:
        with call.out.counting("import") as report:
            if given.dry_run:
                job.compare(_stored(call), report)
            else:
                job.store(call.memory(track_access=False), report)
    except BaseException:
        stored = job.report.new + job.report.changed
        if stored and not given.dry_run:
            note(f"{stored} memories were stored; the same command goes on")
        raise
    _show(call, job.report)


def _stored(call: Call) -> "Memory | None":
    """Open the memory to compare a source with it; None if nothing has made it yet."""
    if "://" not in call.place and not Path(call.place).exists():
        return None
    return call.stored(track_access=False, read_only=True)


def _is_target(call: Call) -> bool:
    place, source = Path(call.place), call.given.file
    return place.exists() and source.exists() and place.samefile(source)


def _show(call: Call, report: "ImportCounts") -> None:
    if call.out.is_json:
        from msgspec import to_builtins  # noqa: PLC0415 - for programs

        call.out.json({"is_dry_run": call.given.dry_run, **to_builtins(report)})
        return
    became = f"{report.new} new, {report.changed} changed, {report.present} unchanged"
    end = "; nothing was stored" if call.given.dry_run else ""
    call.out.line(f"{report.found} memories: {became}{end}")
    if report.kept:
        call.out.line(f"kept as they are: {report.kept} that were changed or deleted here")
    users = sorted(report.users.items())
    for user, count in users[:_SHOWN_USERS]:
        call.out.line(f"  {count:8} of {user or '(no user)'}")
    if len(users) > _SHOWN_USERS:
        call.out.line(f"  and {len(users) - _SHOWN_USERS} more users; --json has all")
    for title, counts in (("left out", report.left_out), ("left behind", report.lost)):
        for kind, count in counts.items():
            call.out.line(f"{title}: {count} {kind}")
    for place in report.examples:
        call.out.line(f"  {place}")
    if not report.found and (report.lost or report.left_out):
        note("none of the records is a memory; --text-field names the field of the text")


def declare_backup(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of backup."""
    parser.add_argument("file", type=Path, help="a path where nothing is yet")


def backup(call: Call) -> None:
    """Copy the database of all agents and users."""
    call.stored(track_access=False).backup(call.given.file, progress=call.out.progress)
    note(f"{call.given.file}: {call.given.file.stat().st_size:,} bytes")
