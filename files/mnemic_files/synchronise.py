"""Brings the memories of a scope to the state of memory files."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from mnemic import MemoryEntry, MemoryStatus
from mnemic.errors import InvalidArgumentError
from mnemic.model import LinkType, MemoryLink, Scope
from mnemic_files.entries import (
    LINKS,
    Wanted,
    declared_edges,
    file_id_in,
    is_current,
    is_of_file,
    record_of,
)
from mnemic_files.errors import MemoryFileFormatError
from mnemic_files.folder import FileProblem
from mnemic_files.ids import entry_id, file_name
from mnemic_files.inside import (
    Criteria,
    NewEntry,
    Record,
    Report,
    Repository,
    checked_record,
    run_blocking,
)
from mnemic_files.scan import Plan, Scan, Source, content_of, planned

if TYPE_CHECKING:
    from mnemic.model import OnEmbedError

_TAKEN: Final = "its id belongs to a memory that did not come from this file"
_LOST: Final = "the file that it supersedes changed while it was read"
_STATES: Final = ["active", "archived", "superseded"]
_PAGE: Final = 1000
_BATCH: Final = 256
"""Memories that are stored, and embedded, at a time."""


class SyncResult(Record, frozen=True, kw_only=True):
    """The outcome of a synchronisation. It is true if a memory changed.

    Attributes:
        added: Ids of files whose memories were added, or restored.
        changed: Ids of files whose memories were changed.
        removed: Ids of files that are gone, whose memories were deleted.
        unchanged: Number of files whose memories are as they were.
        problems: Files and edges that were left out, by scope and name.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    problems: tuple[FileProblem, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class Options(NamedTuple):
    """Choices of a synchronisation.

    Attributes:
        keep_removed: Whether memories stay whose files are gone.
        on_embed_error: Whether memories are stored without vectors where the embedder fails.
        report: Gets the number of memories stored so far and of all.
    """

    keep_removed: bool
    on_embed_error: "OnEmbedError"
    report: Report


class Synchroniser:
    """Brings the memories of one scope to the state of files, and remembers that state.

    Args:
        repository: Has the memories.
        scope: Their scope.
        directories: Paths of all directories.
    """

    def __init__(self, repository: Repository, scope: Scope, directories: Sequence[str]) -> None:
        self._repository = repository
        self._scope = scope
        self._of_user = Scope(scope.agent_id, scope.user_id)
        self._directories = directories
        self._states: dict[UUID, tuple[object, ...]] | None = None

    async def apply(self, scan: Scan, options: Options) -> SyncResult:
        """Bring the memories to the state of a scan."""
        before = self._states
        states = {} if before is None else dict(before)
        listed = await self._listed() if before is None else {}
        new = [one for one in (*scan.sources, *scan.unusable) if one not in states]
        stored = await self._repository.reader.stored(self._of_user, new)
        taken = self._taken(scan.sources, stored)
        sources = {one: of for one, of in scan.sources.items() if one not in taken}
        plan = planned(sources, frozenset(stored.keys() & scan.unusable))
        kept = plan.wanted.keys() | scan.unusable | taken.keys()
        missing = dict.fromkeys(one for one in (*states, *listed) if one not in kept)
        gone = [] if options.keep_removed else await self._removable(missing, scan)
        decided = _Decisions(self._repository, self._of_user, plan, gone)
        await decided.grow(
            one for one, wanted in plan.wanted.items() if states.get(one) != wanted.state
        )
        storing = _Storing(self._repository, self._scope, scan, decided)
        await storing.store(options)
        await self._remove(gone)
        removed = {one.id for one in gone}
        self._states = {one: states.get(one, ()) for one in missing if one not in removed}
        self._states |= {
            one: wanted.state for one, wanted in plan.wanted.items() if one not in storing.failed
        }
        problems = _problems(scan, plan, [*taken.values(), *storing.failed.values()])
        return SyncResult(
            added=_ids(storing.added, plan),
            changed=_ids(storing.changed, plan),
            removed=tuple(sorted(file_id_in(one) for one in gone)),
            unchanged=len(plan.wanted) - len(storing.added) - len(storing.changed),
            problems=problems,
        )

    async def _listed(self) -> dict[UUID, MemoryEntry]:
        """Return the memories of files in the directories, deleted ones apart."""
        found: dict[UUID, MemoryEntry] = {}
        for directory in self._directories:
            filters = {
                "source": {"prefix": directory + os.sep},
                "status": {"in": _STATES},
                "metadata.memory_file": {"exists": True},
            }
            cursor: str | None = None
            while True:
                page = await self._repository.lister.page(
                    self._scope, limit=_PAGE, cursor=cursor, filters=filters, include_deleted=False
                )
                found |= {one.id: one for one in page.entries}
                cursor = page.cursor
                if cursor is None:
                    break
        return found

    def _taken(
        self, sources: Mapping[UUID, Source], stored: Mapping[UUID, MemoryEntry]
    ) -> dict[UUID, FileProblem]:
        """Return the problems of files whose ids belong to other memories."""
        found = {}
        for identity, source in sources.items():
            entry = stored.get(identity)
            if entry is None:
                continue
            if not is_of_file(entry, source.file.id) or not self._scope.has(entry):
                found[identity] = source.folder.problem(file_name(source.file.id), _TAKEN)
        return found

    async def _removable(self, gone: Iterable[UUID], scan: Scan) -> list[MemoryEntry]:
        """Return the memories to delete: those of files in directories that are there."""
        stored = await self._repository.reader.stored(self._of_user, list(dict.fromkeys(gone)))
        return [
            entry
            for entry in stored.values()
            if not entry.is_forgotten
            and self._scope.has(entry)
            and is_of_file(entry, file_id_in(entry))
            and os.path.split(entry.source or "")[0] in scan.present
        ]

    async def _remove(self, gone: Sequence[MemoryEntry]) -> None:
        if gone:
            criteria = Criteria([one.id for one in gone])
            await self._repository.deleter.delete_all(self._scope, criteria, permanent=False)


class _Decisions:
    """The memories that one synchronisation writes or restores.

    Attributes:
        now: The time.
        plan: The memories that the files want.
        stored: The memories that were read.
        touched: Those whose links may have changed.
        writes: Those to write.
        restores: Those to restore.
    """

    def __init__(
        self, repository: Repository, of_user: Scope, plan: Plan, gone: Sequence[MemoryEntry]
    ) -> None:
        self._repository = repository
        self._of_user = of_user
        self.now = repository.now()
        self._of_files = plan.wanted.keys() | {one.id for one in gone}
        self._successors: dict[UUID, list[UUID]] = {}
        for identity, wanted in plan.wanted.items():
            if wanted.supersedes is not None:
                self._successors.setdefault(wanted.supersedes, []).append(identity)
        self._forced: set[UUID] = set()
        self.plan = plan
        self.stored: dict[UUID, MemoryEntry] = {}
        self.touched: dict[UUID, None] = {}
        self.writes: set[UUID] = set()
        self.restores: list[UUID] = []

    async def grow(self, touched: Iterable[UUID]) -> None:
        """Decide which memories are written, beginning with some that may be."""
        waiting = list(touched)
        while waiting:
            self.touched |= dict.fromkeys(waiting)
            await self._read(waiting)
            following: set[UUID] = set()
            for identity in waiting:
                following |= await self._decide(identity)
            waiting = [one for one in following if one not in self.touched]

    async def _read(self, ids: Iterable[UUID]) -> None:
        """Read memories and those that they supersede."""
        wanted = self.plan.wanted
        named = {one for each in ids for one in (each, wanted[each].supersedes) if one is not None}
        missing = [one for one in named if one not in self.stored]
        self.stored |= await self._repository.reader.stored(self._of_user, missing)

    async def _decide(self, identity: UUID) -> set[UUID]:
        """Decide on one memory; return others that must be looked at because of it."""
        wanted, entry = self.plan.wanted[identity], self.stored.get(identity)
        if entry is None:
            return self._write(identity)
        if identity in self._forced or not is_current(entry, wanted):
            return self._write(identity)
        is_superseded = entry.status is MemoryStatus.SUPERSEDED
        if is_superseded and not wanted.is_superseded and await self._is_freed(identity):
            return self._write(identity)
        if entry.forgotten_at is not None:
            retention = self._repository.shared.settings.retention
            if retention is not None and self.now - entry.forgotten_at > retention:
                return self._write(identity)
            self.restores.append(identity)
        if wanted.is_superseded and not is_superseded:
            return self._rewritten(self._successors[identity])
        return set()

    def _write(self, identity: UUID) -> set[UUID]:
        """Write a memory; return its predecessor if it is missing, and what must follow it."""
        if identity in self.writes:
            return set()
        self.writes.add(identity)
        following: set[UUID] = set()
        superseded = self.plan.wanted[identity].supersedes
        if superseded is not None and superseded not in self.stored:
            following.add(superseded)
        entry = self.stored.get(identity)
        if entry is not None and entry.status is MemoryStatus.SUPERSEDED:
            # Storing over it ends its supersession, so those that supersede it are stored again.
            following |= self._rewritten(self._successors.get(identity, ()))
        return following

    def _rewritten(self, successors: Iterable[UUID]) -> set[UUID]:
        """Write memories, those that are not read yet once they are; return what must follow."""
        following: set[UUID] = set()
        for one in successors:
            following.add(one)
            if one in self.stored:
                following |= self._write(one)
            else:
                self._forced.add(one)
        return following

    async def _is_freed(self, identity: UUID) -> bool:
        """Return whether only memories of files superseded a memory, and none does so now."""
        links = await self._repository.linker.links(
            self._of_user, identity, "in", [LinkType.SUPERSEDES]
        )
        return all(link.from_id in self._of_files for link in links)


class _Storing:
    """Writes what was decided.

    Attributes:
        added: Memories that are new, or restored.
        changed: Memories that were there.
        failed: Problems of files that changed while they were read.
    """

    def __init__(
        self, repository: Repository, scope: Scope, scan: Scan, decided: _Decisions
    ) -> None:
        self._repository = repository
        self._scope = scope
        self._of_user = Scope(scope.agent_id, scope.user_id)
        self._scan = scan
        self._plan = decided.plan
        self._decided = decided
        self.added: list[UUID] = []
        self.changed: list[UUID] = []
        self.failed: dict[UUID, FileProblem] = {}

    async def store(self, options: Options) -> None:
        """Write what was decided, predecessors first."""
        kept = await self._kept_links()
        records = await run_blocking(self._records, self._repository)
        options.report(0, len(records))
        for begin in range(0, len(records), _BATCH):
            batch = records[begin : begin + _BATCH]
            await self._repository.adder.add(
                [NewEntry.of_record(checked_record(record, self._scope)) for record in batch],
                on_conflict="replace",
                on_embed_error=options.on_embed_error,
                may_repeat=True,
            )
            options.report(begin + len(batch), len(records))
        for identity in self._decided.restores:
            await self._restore(identity)
        await self._repository.linker.link_all(self._scope, [*self._links(), *kept])

    def _records(self) -> list[MemoryEntry]:
        """Return the memories to store, predecessors first; files that failed are left out."""
        records = []
        for identity, wanted in self._plan.wanted.items():
            if identity not in self._decided.writes:
                continue
            entry = self._decided.stored.get(identity)
            try:
                if wanted.supersedes in self.failed:
                    raise MemoryFileFormatError(_LOST)
                content = self._content(wanted, entry)
                records.append(record_of(wanted, content, self._scope, entry))
            except InvalidArgumentError as error:
                source = self._scan.sources[identity]
                name = file_name(wanted.file.id)
                self.failed[identity] = source.folder.problem(name, str(error))
                continue
            is_new = entry is None or entry.is_forgotten
            (self.added if is_new else self.changed).append(identity)
        return records

    def _content(self, wanted: Wanted, entry: MemoryEntry | None) -> str:
        read = self._scan.contents.get(wanted.id)
        if read is not None:
            return read
        if entry is not None and is_current(entry, wanted):
            return entry.content
        return content_of(self._scan.sources[wanted.id])

    async def _restore(self, identity: UUID) -> None:
        if await self._repository.deleter.restore(self._scope, identity):
            self.added.append(identity)

    async def _kept_links(self) -> list[MemoryLink]:
        """Return the links of memories to be replaced that do not come from their files."""
        found = []
        for identity in self._decided.writes & self._decided.stored.keys():
            of_file = {
                (LINKS[edge.relationship], entry_id(edge.id))
                for edge in declared_edges(self._decided.stored[identity])
                if edge.relationship in LINKS
            }
            links = await self._repository.linker.links(self._of_user, identity, "out", None)
            found += [
                link
                for link in links
                if link.type is not LinkType.SUPERSEDES and (link.type, link.to_id) not in of_file
            ]
        return found

    def _links(self) -> list[MemoryLink]:
        """Return the links of the memories that may have changed."""
        return [
            MemoryLink(identity, target, kind, 1.0, self._decided.now)
            for identity in self._decided.touched
            if identity not in self.failed
            for kind, target in self._plan.wanted[identity].edges
        ]


def _ids(given: Iterable[UUID], plan: Plan) -> tuple[str, ...]:
    return tuple(sorted(plan.wanted[one].file.id for one in given))


def _problems(scan: Scan, plan: Plan, more: Iterable[FileProblem]) -> tuple[FileProblem, ...]:
    found = [
        problem for of in (scan.problems, plan.problems) for each in of.values() for problem in each
    ]
    return tuple(sorted([*found, *more], key=lambda one: (one.scope, one.name, one.reason)))
