"""What concerns a whole file or scope: copies, exports, checks, audits, other keys."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from mnemic.crypto import KeyProvider, MasterKey
from mnemic.errors import InvalidArgumentError, SealBrokenError
from mnemic.model import ImportResult, MemoryAudit, Scope, VerifyReport, validation
from mnemic.model.new_entry import NewEntry
from mnemic.model.results import AuditRequest
from mnemic.model.validation import flag
from mnemic.new_files import typed
from mnemic.observability.table import HINTED
from mnemic.protocols import Source, Target
from mnemic.reporting.progress import Progress, Report, reporting, silent
from mnemic.repository.adding import Adder
from mnemic.repository.parts import Part, Shared
from mnemic.store.operations import EndRotation, Reseal, ScopeStatistics, SealedUnderOtherKeys
from mnemic.threads.sync_bridge import arrived, run_blocking

if TYPE_CHECKING:
    from uuid import UUID

    from mnemic.context.redaction import RedactionPattern
    from mnemic.repository.export import ExportSelection


RESEALED_AT_ONCE: Final = 1000
"""Memories of one transaction: other writes wait for about 50 ms."""

_MOST_ROUNDS: Final = 10
"""Rounds over what is left: each write takes in the new key, so few are left after the first. In a
file that somebody else made, a memory may be sealed anew each time and still be one of them."""


class Maintenance(Part):
    """Copies, verifies and audits what one agent's memories are stored in; changes its key.

    Args:
        shared: What it shares with the others.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._shared = shared
        self._encryption = shared.settings.encryption

    async def backup(
        self, target: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Copy everything in the file, all agents', as of one moment, to a new file."""
        self._limits.require_storing()
        file = validation.path("path", target)
        with reporting(progress, "backup") as report:
            await self._accesses.write()
            await run_blocking(lambda: self._store.backup(file, report=report), self._store)

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Read the whole file and compare it with its checksums; see `Store.verify`."""
        self._limits.require_storing()
        flag("repair", repair)
        with reporting(progress, "verify") as report:
            return await run_blocking(
                lambda: self._store.verify(repair=repair, report=report), self._store
            )

    async def audit(
        self,
        scope: Scope,
        request: AuditRequest,
        patterns: Sequence["str | RedactionPattern"],
        *,
        progress: Progress | None = None,
    ) -> MemoryAudit:
        """Count the memories of a scope that may need attention; see `Memory.audit`."""
        from mnemic.repository.audit import Audit, SecretScan  # noqa: PLC0415 - rarely needed

        self._limits.require_storing()
        secrets = SecretScan(patterns)
        with reporting(progress, "audit") as report:
            await self._accesses.write()
            audited = await run_blocking(
                lambda: Audit(self._shared, scope, request, secrets).run(report), self._store
            )
        if audited.stored:
            return audited
        return msgspec.structs.replace(audited, hint=await self._user_hints.of("audit", scope))

    async def rotate_key(
        self, key: bytes | MasterKey | KeyProvider, *, progress: Progress | None = None
    ) -> int:
        """Seal under another key from now on, and all that is sealed; return how many."""
        self._limits.require_storing()
        with reporting(progress, "rotate_key") as report:
            if self._encryption is None:
                raise InvalidArgumentError(
                    "the memory was opened without encryption, and has no key to replace; open it "
                    "with encryption=Encryption(key=...)"
                )
            rotated = self._encryption.rotated_to(key)
            begin = self._store.begin_rotation
            await run_blocking(lambda: begin(self._agent_id, rotated), self._store)
            self._encryption = rotated
            return await self._resealed_until_none_is_left(report)

    async def _resealed_until_none_is_left(self, report: Report) -> int:
        number = await self._resealed(report)
        for _ in range(_MOST_ROUNDS):
            if await arrived(self._store.write(EndRotation(self._agent_id))):
                return number
            again = await self._resealed(silent)  # those that other processes sealed meanwhile
            if not again:
                break
            number += again
        left = await run_blocking(self._left, self._store)
        raise SealBrokenError(
            f"{left} sealed memories of agent {self._agent_id!r} do not open, and were not sealed "
            "under the new key; the former keys are kept for them. verify() names them: restore a "
            "backup, or delete them, and rotate again"
        )

    async def _resealed(self, report: Report) -> int:
        total = await run_blocking(self._left, self._store)
        done = after = 0
        report(done, total)
        while True:
            sealed, last = await arrived(
                self._store.write(Reseal(self._agent_id, after, RESEALED_AT_ONCE))
            )
            if not last:
                return done
            done, after = done + sealed, last
            report(done, max(done, total))

    def _left(self) -> int:
        return self._store.read(SealedUnderOtherKeys(self._agent_id))


class Transfer(Part):
    """Moves memories of one agent to files and back.

    Args:
        shared: What it shares with the others.
        adder: Stores imported ones.
    """

    def __init__(self, shared: Shared, adder: Adder) -> None:
        super().__init__(shared)
        self._adder = adder

    async def export(
        self,
        scope: Scope,
        target: Target,
        *,
        include_deleted: bool,
        embeddings: bool,
        overwrite: bool,
        unseal: bool,
        progress: Progress | None,
    ) -> int:
        """Write the memories of a scope and the links between them; return their number."""
        try:
            from mnemic.repository.export import ExportSelection, export  # noqa: PLC0415 - slow
        except OSError as error:  # no descriptor is left to read it by
            raise typed(error, str(target)) from error
        self._limits.require_storing()
        flag("include_forgotten", include_deleted)
        flag("embeddings", embeddings)
        flag("overwrite", overwrite)
        flag("unseal", unseal)
        with reporting(progress, "export") as report:
            await self._accesses.write()
            model = self._models.now.stored_name if embeddings else None
            part = ExportSelection(scope, self._now(), include_deleted, model, unseal)
            total = None
            if report is not silent:
                total = await run_blocking(lambda: self._number(part), self._store)
            written = await run_blocking(
                lambda: export(
                    self._store, part, target, overwrite=overwrite, total=total, report=report
                ),
                self._store,
            )
        await self._user_hints.of("export", scope)
        if not written:
            hint = f"no memory was written, as there is none for {scope}"
            self._telemetry.record(HINTED, call="export", hint=hint)
        return written

    def _number(self, part: "ExportSelection") -> int:
        """Return the number of memories of a part."""
        stats = self._store.read(ScopeStatistics(part.scope, now=part.now))
        if part.include_deleted:
            return stats.stored_entries
        return stats.active_entries + stats.archived_entries + stats.superseded_entries

    async def import_(
        self, scope: Scope, source: Source, *, progress: Progress | None
    ) -> ImportResult:
        """Store the memories of an export that are missing here, after checking all of it."""
        from mnemic.repository.export import Importer  # noqa: PLC0415 - as above

        self._limits.require_storing()

        evicted: list[UUID] = []

        async def add(entries: Sequence[NewEntry]) -> int:
            added = await self._adder.store(entries, "keep", "raise", is_import=True)
            evicted.extend(added.stored.evicted)
            return len(added.fresh)

        importer = Importer(self._store, scope, add, self._models.now.fits)
        with reporting(progress, "import") as report:
            result = await importer.read(source, self._now(), report)
        return msgspec.structs.replace(result, evicted=tuple(evicted))
