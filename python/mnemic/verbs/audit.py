"""The verb that audits memories."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.model import MemoryAudit, validation
from mnemic.model.deadline import TimeLimit
from mnemic.model.results import AuditRequest
from mnemic.model.validation import flag, items
from mnemic.reporting.progress import Progress
from mnemic.repository import RETENTION
from mnemic.verbs.base import ScopedBase

MAX_FINDINGS: Final = 1_000_000


class AsyncAuditVerbs(ScopedBase):
    """Audits memories."""

    async def audit(
        self,
        *,
        ids: bool = False,
        limit: int = 1000,
        near: float | None = 0.95,
        stale_after: timedelta = RETENTION,
        max_bytes: int | None = None,
        patterns: Sequence["str | mnemic.policy.RedactionPattern"] = (
            "api_key",
            "card",
            "iban",
            "ssn",
        ),
        timeout: float | None = None,
        progress: Progress | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryAudit:
        """Count duplicates, stale memories, plain secrets, and others: docs/how-to/audit.md.

        Args:
            ids: Whether to return ids with the counts, in `findings`, in the order of storing.
            patterns: Secrets: names of known ones, regular expressions, or `RedactionPattern`s.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        most = validation.limit("limit", limit, MAX_FINDINGS)
        request = AuditRequest(
            near=None if near is None else validation.fraction("near", near),
            stale_after=validation.duration("stale_after", stale_after),
            max_bytes=validation.optional_whole("max_bytes", max_bytes),
            limit=most if flag("ids", ids) else 0,
            deadline=TimeLimit.after(timeout, "raise").deadline,
        )
        return await self._repository.maintenance.audit(
            scope, request, items("patterns", patterns), progress=progress
        )
