"""The verb that audits memories."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.model import MemoryAudit, validation
from mnemic.model.audit import AuditRequest
from mnemic.model.deadline import TimeLimit
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
        """Count duplicates, stale memories, secrets in plain text, and others that need attention.

        Nothing is changed, and no access is counted. Memories are read in batches, each as it is at
        that moment, while others write. Memories of different users are never compared.

        Near duplicates are looked for in the order the memories were stored: each active one is
        compared with the earlier ones of its user in the scope that repeat none themselves, and
        repeats the most similar of those with a similarity of at least `near`. The similarity is
        the cosine of their stored vectors; of two memories in as many chunks, the mean of the
        cosines of their chunks in order. Memories without a vector are compared with each other:
        they are near duplicates if the same numbers stand in both texts, and the Jaccard similarity
        of the sets of three consecutive characters is at least `near`. Time grows with the square
        of the number of a user's memories, and all vectors are in memory.

        Args:
            ids: Whether to return ids with the counts, in `findings`.
            limit: Maximum number of findings of each kind, 1 to 1,000,000; the first ones stored.
            near: From 0 to 1; None looks for no near duplicates.
            stale_after: Time without a change and an access after which a memory is stale; 90 days
                unless given, as long as a deleted one can be restored.
            max_bytes: Bytes of UTF-8 beyond which a content is oversized. None: more than the
                embedder sees at once, so that it is embedded in chunks; none without an embedder
                or with one that sees all of any text.
            patterns: Patterns of secrets, as those of `mnemic.policy.Redaction`: names of known
                ones, regular expressions, or `RedactionPattern`s. They are looked for in content,
                tags, metadata, category and source.
            timeout: Maximum seconds; None for no maximum.
            progress: Called with the number of memories read so far, and their total; or True for a
                bar. See `mnemic.annotations.Progress`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            The counts, and the findings in the order the memories were stored. Texts are never in
            it.

        Raises:
            InvalidArgumentError: If an argument is of the wrong type or out of range, or a pattern
                is invalid.
            DeadlineExceededError: If the timeout passes.
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
        return await self._repository.audit(
            scope, request, items("patterns", patterns), progress=progress
        )
