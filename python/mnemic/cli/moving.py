"""Verbs that move memories: export, import, backup."""

import argparse
import sys
from pathlib import Path

from mnemic.cli.call import Call


def declare_export(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of export."""
    parser.add_argument("file", nargs="?", default="-", help="a new file; - or none is stdout")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    parser.add_argument("--unseal", action="store_true", help="write sealed memories in plain text")
    parser.add_argument("--embeddings", action="store_true", help="with their vectors")


def export(call: Call) -> None:
    """Write all memories as lines of JSON."""
    given = call.given
    written = call.memory(track_access=False).export(
        sys.stdout if given.file == "-" else Path(given.file),
        overwrite=given.overwrite,
        unseal=given.unseal,
        embeddings=given.embeddings,
        progress=call.out.progress,
        **call.scope,
    )
    call.out.note(f"{written} memories written")


def declare_import(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of import."""
    parser.add_argument("file", type=Path, help="an export of mnemic")


def import_(call: Call) -> None:
    """Store the memories of a file."""
    done = call.memory().import_(call.given.file, progress=call.out.progress)
    if call.out.is_json:
        call.out.json(done.to_dict())
    else:
        call.out.line(f"stored {done.stored} memories")


def declare_backup(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of backup."""
    parser.add_argument("file", type=Path, help="a path where nothing is yet")


def backup(call: Call) -> None:
    """Copy the database of all agents and users."""
    call.memory(track_access=False).backup(call.given.file, progress=call.out.progress)
    call.out.note(f"{call.given.file}: {call.given.file.stat().st_size:,} bytes")
