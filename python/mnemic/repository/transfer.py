"""Exports memories to JSON Lines and imports them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from mnemic.model import ImportResult, Scope
from mnemic.model.new_entry import NewEntry
from mnemic.model.validation import flag
from mnemic.new_files import typed
from mnemic.observability.table import HINTED
from mnemic.protocols import Source, Target
from mnemic.reporting.progress import Progress, reporting, silent
from mnemic.repository.adding import Adder
from mnemic.repository.parts import Part, Shared
from mnemic.store.operations import ScopeStatistics
from mnemic.threads.sync_bridge import run_blocking

if TYPE_CHECKING:
    from uuid import UUID

    from mnemic.repository.export import ExportSelection


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
