"""RetrievalPayload: the memories for a prompt, and the account of how they were chosen."""

from datetime import datetime

from mnemic.context.prompt_block import format_for_system_prompt
from mnemic.model.payload import DroppedMemory, PayloadMemory
from mnemic.policy.conditions import Trigger
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.errors import RetrievalError
from mnemic.records import Record
from mnemic.records.options import CamelCaseRecord


class RetrievalMetadata(Record, frozen=True, kw_only=True):
    """The account of one run.

    Attributes:
        trigger: Whether the search ran, and why.
        config: The active configuration, with the administrator's settings.
        query_time: Milliseconds that the run took.
        total_results: Memories found, before the steps.
        included_results: Memories in the payload.
        total_tokens: Tokens of the prompt block, by the policy's counter.
        applied_filters: Names of the steps that were applied, in their order.
        dropped: The memories that were found and are not in the payload.
        search_type: The search that was really made: "hybrid", "semantic" or "keyword"; "" if
            there was none.
        error: The error, if the run had no result of its own.
        from_cache: Whether the payload is an earlier one of an identical request.
        age: Seconds since the payload was made, if it is from the cache.
        degraded: Whether the embedder failed, so that the search was one by keywords.
        degraded_reason: Why the embedder failed, without a word of a memory; else None.
        partial: Whether the search was cut at its time limit.
        approximate: Whether an approximate index chose the memories that were ranked.
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
        by_another: Whether the message names one speaker, and the best memory is by another, which
            the prompt block then says.
        time_zone: Name of the zone of the block's times; None is that of its form, or UTC.
    """

    trigger: Trigger
    config: RetrievalConfig
    query_time: float = 0.0
    total_results: int = 0
    included_results: int = 0
    total_tokens: int = 0
    applied_filters: tuple[str, ...] = ()
    dropped: tuple[DroppedMemory, ...] = ()
    search_type: str = ""
    error: RetrievalError | None = None
    from_cache: bool = False
    age: float | None = None
    degraded: bool = False
    degraded_reason: str | None = None
    partial: bool = False
    approximate: bool = False
    stale_since: datetime | None = None
    by_another: bool = False
    time_zone: str | None = None


class RetrievalPayload(CamelCaseRecord, frozen=True, kw_only=True):
    """The memories for a prompt.

    Attributes:
        memories: In the order of the prompt block's lines, before grouping.
        metadata: The account of the run.
    """

    memories: tuple[PayloadMemory, ...]
    metadata: RetrievalMetadata

    @property
    def prompt(self) -> str:
        """The prompt block, in the form that the configuration names; "" without memories."""
        return format_for_system_prompt(self)
