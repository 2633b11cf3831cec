"""The order of locks and the list of threads, as docs/project/design.md has them."""

import re

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "project" / "design.md"
OTHERS = ("the file lock of snapshots", "a pooled connection", "the connection apart")
"""What is held as a lock is."""

SUCCESSIVE = {"NativeIndex._lock"}
"""Those of which two are held: one, and that of what takes its place and nobody else knows yet."""


def rows_of(heading):
    """Return the rows of the table below a heading, each as its cells."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def levels():
    """Return the level of each lock."""
    return {
        name: int(level)
        for level, names, *_ in rows_of("Locks")
        for name in re.findall(r"`([\w.]+)`", names) or [names]
    }


def deeds():
    """Return what may be done under each lock, as the page's words."""
    told = {int(row[0]): row[3] for row in rows_of("Locks")}
    return {name: told[level] for name, level in levels().items()}


def thread_names():
    """Return the names of the threads."""
    return {
        name for row in rows_of("Threads") for name in re.findall(r"`(mnemic-[\w…-]+)`", row[0])
    }


def problems(seen):
    """Return what a recorder has seen against the order, each with where it was."""
    level, allowed = levels(), deeds()
    found = []
    for outer, inner, where in seen["pairs"]:
        if outer not in level or inner not in level:
            found.append(f"no level: {outer} or {inner}")
        elif level[outer] >= level[inner] and not (outer == inner and inner in SUCCESSIVE):
            found.append("\n".join([f"{inner} is taken under {outer}", *where]))
    for lock, deed, where in seen["deeds"]:
        if deed not in allowed.get(lock, ""):
            found.append("\n".join([f"{deed} under {lock}", *where]))
    return found


def circle(seen):
    """Return locks each of which was taken under the one before, the first one at the end again."""
    below = {}
    for outer, inner, _ in seen["pairs"]:
        if outer != inner:
            below.setdefault(outer, set()).add(inner)
    ended = set()

    def found_from(name, way):
        if name in way:
            return [*way[way.index(name) :], name]
        if name not in ended:
            for other in below.get(name, ()):
                found = found_from(other, [*way, name])
                if found:
                    return found
            ended.add(name)
        return []

    return next(filter(None, (found_from(name, []) for name in below)), [])
