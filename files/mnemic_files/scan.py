"""Finds the files of both scopes that changed, and the memories that all of them want."""

import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from mnemic.model import LinkType
from mnemic_files.entries import LINKS, SUPERSEDES, Wanted, digest_of
from mnemic_files.errors import MemoryFileFormatError
from mnemic_files.folder import SHADOWED, FileProblem, Folder, FoundFile
from mnemic_files.ids import SUFFIX, entry_id, file_name, id_problem, shown_id
from mnemic_files.memory_file import MemoryFile
from mnemic_files.reading import Signature, signatures

_EMPTY: Final = "it has no content"


class _Known(NamedTuple):
    """A file as it was read last.

    Attributes:
        signature: Its state then.
        file: The memory file without its content, as it was last good; None if it never was.
        digest: Hash of that.
        problems: Of the last reading.
    """

    signature: Signature
    file: MemoryFile | None
    digest: str
    problems: tuple[FileProblem, ...]

    @property
    def is_bad(self) -> bool:
        """Whether the file as it is now cannot be used."""
        return any(problem.is_left_out for problem in self.problems)


class Source(NamedTuple):
    """A file that counts.

    Attributes:
        file: The memory file without its content.
        digest: Hash of the whole file.
        folder: Where it is.
    """

    file: MemoryFile
    digest: str
    folder: Folder


class Scan(NamedTuple):
    """The files of all directories.

    Attributes:
        sources: Files that count, by the ids of their memories.
        contents: Contents of those that were read now.
        unusable: Memories of files that cannot be used as they are.
        present: Directories that exist.
        problems: Problems of files, by scope.
    """

    sources: dict[UUID, Source]
    contents: dict[UUID, str]
    unusable: frozenset[UUID]
    present: frozenset[str]
    problems: dict[str, list[FileProblem]]


class Scanner:
    """Reads the files whose name, time or size changed since the last scan.

    Args:
        folders: The directories; of equal ids the first one's file counts.
    """

    def __init__(self, folders: Iterable[Folder]) -> None:
        self._folders = tuple(folders)
        self._known: dict[str, dict[str, _Known]] = {}

    def scan(self) -> Scan:
        """Return all files.

        Raises:
            StoreFileError: If a directory cannot be read.
        """
        scan = Scan({}, {}, frozenset(), frozenset(), {})
        present, unusable = set(), set[UUID]()
        for folder in self._folders:
            if os.path.isdir(folder.path):  # noqa: PTH112 - pathlib is slow
                present.add(folder.path)
            contents = self._refresh(folder)
            known = self._known[folder.scope]
            problems = [one for name in sorted(known) for one in known[name].problems]
            unusable |= {
                entry_id(file_id)
                for name, one in known.items()
                # A name that is no id, such as one that is not in UTF-8, never had a memory.
                if one.is_bad and id_problem(file_id := name.removesuffix(SUFFIX)) is None
            }
            problems += self._take(scan, folder, contents)
            scan.problems[folder.scope] = problems
        return scan._replace(present=frozenset(present), unusable=frozenset(unusable))

    def _refresh(self, folder: Folder) -> dict[str, str]:
        """Read what changed in a directory; return the contents by name."""
        before = self._known.get(folder.scope, {})
        contents: dict[str, str] = {}
        known: dict[str, _Known] = {}
        for name, signature in signatures(folder.path).items():
            old = before.get(name)
            if old is not None and old.signature == signature:
                known[name] = old
                continue
            found = folder.found(name)
            if found is None:
                continue
            known[name] = _known(folder, name, found, old, signature)
            if found.file is not None and not known[name].is_bad:
                contents[name] = found.file.content
        self._known[folder.scope] = known
        return contents

    def _take(self, scan: Scan, folder: Folder, contents: Mapping[str, str]) -> list[FileProblem]:
        """Add a directory's files to a scan; return the problems of those that do not count."""
        problems = []
        for name, one in self._known[folder.scope].items():
            if one.file is None:
                continue
            identity = one.file.entry_id
            if identity in scan.sources:
                problems.append(folder.problem(file_name(one.file.id), SHADOWED))
                continue
            scan.sources[identity] = Source(one.file, one.digest, folder)
            if name in contents:
                scan.contents[identity] = contents[name]
        return problems


def _known(
    folder: Folder,
    name: str,
    found: FoundFile,
    old: _Known | None,
    signature: Signature,
) -> _Known:
    file, problems = found.file, found.problems
    if file is not None and not file.content:
        file, problems = None, (*problems, folder.problem(name, _EMPTY))
    if file is None:
        good, digest = (None, "") if old is None else (old.file, old.digest)
        return _Known(signature, good, digest, problems)
    bare = msgspec.structs.replace(file, content="")
    return _Known(found.signature, bare, digest_of(file), problems)


class Plan(NamedTuple):
    """The memories that files want.

    Attributes:
        wanted: By id, in an order in which predecessors come first.
        problems: Edges that were left out, by scope.
    """

    wanted: dict[UUID, Wanted]
    problems: dict[str, list[FileProblem]]


def planned(sources: Mapping[UUID, Source], known: frozenset[UUID]) -> Plan:
    """Return the memories that files want.

    Args:
        sources: The files.
        known: Further memories that an edge may lead to.
    """
    problems: dict[str, list[FileProblem]] = {}

    def report(source: Source, reason: str) -> None:
        name = file_name(source.file.id)
        problem = source.folder.problem(name, reason, is_left_out=False)
        problems.setdefault(source.folder.scope, []).append(problem)

    present = sources.keys() | known
    predecessors: dict[UUID, UUID] = {}
    edges: dict[UUID, tuple[tuple[LinkType, UUID], ...]] = {}
    for identity, source in sources.items():
        superseded, edges[identity], reasons = _edges(source.file, present)
        if superseded is not None:
            predecessors[identity] = superseded
        for reason in reasons:
            report(source, reason)
    for identity in _in_cycles(predecessors):
        del predecessors[identity]
        report(sources[identity], "cycle detected: its edge supersedes is left out")
    superseded_ids = frozenset(predecessors.values())
    wanted = {
        identity: Wanted(
            source.file,
            source.digest,
            source.folder.path_of(source.file.id),
            predecessors.get(identity),
            identity in superseded_ids,
            edges[identity],
        )
        for identity, source in sources.items()
    }
    order = [one for one in _ordered(wanted, predecessors) if one in wanted]
    return Plan({identity: wanted[identity] for identity in order}, problems)


def _edges(
    file: MemoryFile, known: AbstractSet[UUID]
) -> tuple[UUID | None, tuple[tuple[LinkType, UUID], ...], list[str]]:
    """Return what a file supersedes, its other edges, and reasons for those that are left out."""
    reasons: list[str] = []
    superseded: list[UUID] = []
    edges: dict[tuple[LinkType, UUID], None] = {}
    given = [(edge.id, edge.relationship) for edge in file.related]
    if file.supersedes is not None:
        given.insert(0, (file.supersedes, SUPERSEDES))
    for target, relationship in given:
        identity = entry_id(target)
        if relationship != SUPERSEDES and relationship not in LINKS:
            reasons.append("an edge has an unknown relationship, and is left out")
        elif target == file.id:
            reasons.append("an edge leads to the file itself, and is left out")
        elif identity not in known:
            reasons.append(f"an edge leads to {shown_id(target)}, which is not there yet")
        elif relationship == SUPERSEDES:
            superseded.append(identity)
        else:
            edges[LINKS[relationship], identity] = None
    if len(set(superseded)) > 1:
        reasons.append("it supersedes several files, of which the first counts")
    return (superseded[0] if superseded else None), tuple(edges), reasons


def _in_cycles(predecessors: Mapping[UUID, UUID]) -> list[UUID]:
    """Return the ids whose predecessors lead back to them."""
    found: list[UUID] = []
    done: set[UUID] = set()
    for start in predecessors:
        path: dict[UUID, None] = {}
        at: UUID | None = start
        while at is not None and at not in done and at not in path:
            path[at] = None
            at = predecessors.get(at)
        if at is not None and at in path:
            walked = list(path)
            found += walked[walked.index(at) :]
        done |= path.keys()
    return found


def _ordered(wanted: Iterable[UUID], predecessors: Mapping[UUID, UUID]) -> Iterable[UUID]:
    """Yield ids so that predecessors come first."""
    done: set[UUID] = set()
    for start in wanted:
        path: list[UUID] = []
        at: UUID | None = start
        while at is not None and at not in done:
            path.append(at)
            done.add(at)
            at = predecessors.get(at)
        yield from reversed(path)


def content_of(source: Source) -> str:
    """Return the content of a file that was not read now.

    Raises:
        MemoryFileFormatError: If it changed since it was scanned, and is not good now.
    """
    found = source.folder.found(file_name(source.file.id))
    if found is None or found.file is None or not found.file.content:
        raise MemoryFileFormatError("it changed while it was read")
    return found.file.content
