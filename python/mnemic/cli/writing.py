"""Verbs that store and change: add, edit, link."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from mnemic.cli.call import Call, read_stdin, read_text
from mnemic.cli.output import note
from mnemic.errors import InvalidArgumentError


def declare_add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of add."""
    parser.add_argument("text", nargs="*", help="a memory each; none, or -, reads one from stdin")
    parser.add_argument("-f", "--file", type=Path, help="reads the memory from a file")
    parser.add_argument("--lines", action="store_true", help="each line read is a memory")
    parser.add_argument("--type", default="fact", help="fact, preference, … (fact)")
    parser.add_argument("--tag", action="append", default=[], help="may be repeated")
    parser.add_argument("--importance", type=float, default=0.5, help="from 0 to 1 (.5)")
    parser.add_argument("--sensitive", action="store_true", help="sealed, and shown to no prompt")
    parser.add_argument("--key", metavar="NAME", help="stored once under this name")


def add(call: Call) -> None:
    """Store memories, and print their ids."""
    given = call.given
    texts = list(_texts(call))
    if given.key is not None and len(texts) > 1:
        raise InvalidArgumentError("--key names one memory; there are several")
    if not texts:
        note("there is no text; nothing was stored")
        return
    memory = call.memory()
    for text in texts:
        added = memory.add(
            text,
            user_id=call.user,
            type=given.type,
            tags=given.tag,
            importance=given.importance,
            sensitive=given.sensitive,
            idempotency_key=given.key,
        )
        call.out.result(added.to_dict(), str(added.id))


def _texts(call: Call) -> Iterator[str]:
    given = call.given
    read = [text for text in given.text if text != "-"]
    yield from read
    if given.file is not None:
        with given.file.open(encoding="utf-8") as file:
            content = read_text(file, str(given.file))
    elif len(read) == len(given.text) and read:
        return
    else:
        content = read_stdin()
    yield from filter(None, map(str.strip, content.splitlines() if given.lines else [content]))


def declare_edit(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of edit."""
    parser.add_argument("id", help="the memory's id")
    parser.add_argument("text", nargs="?", help="its new text; - reads it from stdin")
    parser.add_argument("--type")
    parser.add_argument("--importance", type=float)
    parser.add_argument("--tag", action="append", default=[], help="adds a tag")
    parser.add_argument("--untag", action="append", default=[], help="removes a tag")
    parser.add_argument("--if-version", type=int, help="only if it still has this version")


def edit(call: Call) -> None:
    """Change a memory, and print its new version."""
    given = call.given
    changed = call.memory().update(
        given.id,
        content=read_stdin() if given.text == "-" else given.text,
        type=given.type,
        importance=given.importance,
        add_tags=given.tag,
        remove_tags=given.untag,
        if_version=given.if_version,
        **call.scope,
    )
    call.out.result(changed.to_dict(), f"{changed.id} version {changed.version}")


def declare_link(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of link."""
    parser.add_argument("id", help="a memory's id")
    parser.add_argument("other", nargs="?", help="another one's; without it the links are shown")
    parser.add_argument("--type", default="related", help="related, refines, … (related)")
    parser.add_argument("--strength", type=float, default=1.0, help="from 0 to 1 (1)")
    parser.add_argument("--remove", action="store_true", help="remove the link")


def link(call: Call) -> None:
    """Connect two memories, or show the links of one."""
    given = call.given
    memory = call.stored()
    if given.other is None:
        shown = memory.links(given.id, **call.scope)
        if not shown:
            memory.get(given.id, **call.scope)  # it may not be there
    elif given.remove:
        removed = memory.unlink(given.id, given.other, given.type, **call.scope)
        call.out.result({"removed": removed}, f"removed {removed}")
        return
    else:
        shown = [memory.link(given.id, given.other, given.type, given.strength, **call.scope)]
    for one in shown:
        text = f"{one.from_id} {one.type.value} {one.to_id} {one.strength:.2f}"
        call.out.result(one.to_dict(), text)
