"""The table of telemetry: how all that happens is logged, published, measured and added up.

`Telemetry` reads it; its callers give the facts, by the names that lines, events and metrics use.
"""

from functools import partial
from logging import DEBUG, ERROR, INFO, WARNING, Logger
from typing import Any, NamedTuple

from mnemic.observability import events
from mnemic.reporting.logs import logger

# OpenTelemetry's own bounds begin at 5 ms; most operations end below one, as
# docs/project/lab/performance.md shows.
_MILLISECONDS = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0),
    *(500.0, 1000.0, 2500.0, 5000.0, 10000.0),
)
_PERCENT = (0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 99.0, 100.0)
_TOKENS = (0.0, 50.0, 100.0, 200.0, 400.0, 600.0, 800.0, 1000.0, 1250.0, 1500.0, 2000.0, 3000.0)
_RESULTS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)

HISTOGRAMS = {
    "ms": ("latency_ms", _MILLISECONDS),
    "%": ("", _PERCENT),
    "{token}": ("tokens_used", _TOKENS),
    "{result}": ("result_count", _RESULTS),
}
"""The usual fact and the bounds of histograms, by unit; metrics of other units are counters."""


class Metric(NamedTuple):
    """A metric that a row moves: a histogram, or a counter, which no 0 moves.

    Attributes:
        name: Its name.
        unit: In UCUM: what is counted stands in braces.
        description: What it measures.
        attribute: The fact that tells its measurements apart, if there is one.
        fact: The fact by which it moves, if not the usual one of its unit; a counter without one
            moves by 1, and a fact that is None moves nothing.
    """

    name: str
    unit: str
    description: str
    attribute: str = ""
    fact: str | None = None


class Row(NamedTuple):
    """How one kind of thing that happens is logged, published, measured and added up.

    Attributes:
        log: Logger of the line.
        level: Level of the line, where the caller gives no other.
        line: The line, with the names of facts; "" without one.
        event: Class of the event, whose fields are facts; None without one.
        metrics: The metrics that it moves.
        sums: Facts that statistics add up; a name that is no fact counts how often it happens.
    """

    log: Logger
    level: int
    line: str
    event: type[Any] | None
    metrics: tuple[Metric, ...]
    sums: tuple[str, ...]


def _row(
    name: str,
    prefix: str,
    level: int,
    line: str = "",
    event: type[Any] | None = None,
    *metrics: Metric,
    sums: tuple[str, ...] = (),
) -> Row:
    named = [metric._replace(name=prefix + metric.name) for metric in metrics]
    return Row(logger(name), level, line, event, tuple(named), sums)


_memory = partial(_row, "mnemic.observability.telemetry", "agents.memory.longterm.")
_retrieval = partial(_row, "mnemic.retrieval", "agents.memory.retrieval.")
_recall = partial(_row, "mnemic.recall", "Agents.Memory.Retriever.")
_policy = partial(_row, "mnemic.policy", "retrieval.")
_hyde = partial(_row, "mnemic.hyde", "")

OPENED = _memory(INFO, "Long-term memory initialized for agent %(agent_id)s")
WRITTEN = _memory(
    DEBUG, "", None, Metric("store_latency_ms", "ms", "Storing one memory or a batch")
)
READ = _memory(DEBUG, "", None, Metric("retrieve_latency_ms", "ms", "Retrieving one id or several"))
EMBEDDED = _memory(DEBUG, "", None, Metric("embedding_time_ms", "ms", "One call of the embedder"))
NOT_STORED = _memory(ERROR, "Failed to store memory entry: %(error)s")
NOT_EMBEDDED = _memory(
    WARNING, "%(count)d memory entries are stored without vectors for now: %(error)s"
)
SLOWLY_EMBEDDED = _memory(
    WARNING, "Embedding generation slow: %(latency_ms).0fms for entry %(entry_id)s"
)
HINTED = _memory(WARNING, "%(call)s() of agent %(agent_id)s: %(hint)s")
UNLIKELY_TIMES = _memory(WARNING, "%(count)d memory entries of agent %(agent_id)s have %(what)s")
STORED = _memory(
    DEBUG,
    "Stored memory entry %(entry_id)s for agent %(agent_id)s, type=%(kind)s, size=%(size)dbytes, "
    "encrypted=%(was_encrypted)s",
    events.MemoryStoredEvent,
)
REPEATED = _memory(
    INFO,
    "Memory entry %(entry_id)s of agent %(agent_id)s repeats %(repeats)s, which was recalled "
    "lately",
    events.MemoryRepeatedEvent,
)
RETRIEVED = _memory(
    DEBUG, "Retrieved memory entry %(entry_id)s for agent %(agent_id)s", events.MemoryRetrievedEvent
)
SEARCHED = _memory(
    DEBUG,
    "%(kind)s search for agent %(agent_id)s: query='%(query)s', results=%(result_count)d, "
    "time=%(latency_ms).1fms",
    events.MemorySearchCompletedEvent,
    Metric(
        "search_latency_ms", "ms", "One search, embedding included, by search_type", "search_type"
    ),
    Metric("search_results", "{result}", "Memories that a search found", "search_type"),
)
BY_KEYWORDS = _memory(WARNING, "A search of agent %(agent_id)s is answered by keywords: %(error)s")
UPDATED = _memory(DEBUG, "", events.MemoryUpdatedEvent)
FORGOTTEN = _memory(
    INFO,
    "Memory entry %(entry_id)s forgotten for agent %(agent_id)s, permanent=%(permanent)s",
    events.MemoryForgottenEvent,
)
DELETED = FORGOTTEN._replace(line="")
EMPTIED = _memory(INFO, "%(count)d memory entries forgotten for %(scope)s, permanent=%(permanent)s")
PURGED = _memory(INFO, "%(count)d memory entries purged for agent %(agent_id)s")
EVICTED_IDS = _memory(
    INFO, "%(count)d memory entries evicted for agent %(agent_id)s to make space: %(ids)s"
)
EVICTED = _memory(
    DEBUG,
    "",
    None,
    Metric(
        "evictions", "{entry}", "Memories that were deleted to make space for others", fact="count"
    ),
)
QUOTA_PASSED = _memory(
    WARNING,
    "Storage quota at %(percent_used).0f%% for agent %(agent_id)s",
    events.MemoryQuotaWarningEvent,
)

READY = _retrieval(INFO, "Memory retrieval service initialized for agent %(agent_id)s")
CACHE_HIT = _retrieval(
    DEBUG, "Cache hit for retrieval query, returning cached results", sums=("lookups", "hits")
)
CACHE_MISS = _retrieval(DEBUG, sums=("lookups",))
NO_RESULTS = _retrieval(WARNING, "Retrieval returned no results for query '%(query)s'")
ANSWERED = _retrieval(
    DEBUG,
    "Retrieved %(result_count)d/%(total_matches)d memories for query '%(query)s' in "
    "%(latency_ms).1fms",
    events.MemoryRetrievalCompletedEvent,
    Metric("total", "{retrieval}", "Queries that were answered"),
    Metric("cache_hits", "{retrieval}", "Queries whose answer was known", fact="from_cache"),
    Metric("latency_ms", "ms", "Answering one query, from the cache or not"),
    Metric("results", "{result}", "Memories that a retrieval returned"),
    sums=("retrievals", "result_count", "latency_ms", "is_expanded"),
)
EXPANDED = _retrieval(
    DEBUG,
    "Expanded query '%(original_query)s' to '%(expanded_query)s' (+%(terms_added)d terms)",
    events.QueryExpandedEvent,
)
NOT_EXPANDED = _retrieval(
    WARNING,
    "Query expansion confidence low (%(confidence).2f), using original query",
    events.QueryExpandedEvent,
)
EXPANSION_FAILED = _retrieval(WARNING, "Query expansion failed (%(error)s), using original query")
SUGGESTION_FAILED = _retrieval(WARNING, "Suggesting queries failed (%(error)s), none is suggested")
AUGMENTED = _retrieval(
    DEBUG,
    "Augmented context with %(items_added)d retrieved memories (%(tokens_added)d tokens)",
    events.ContextAugmentedEvent,
    Metric("augmentations", "{augmentation}", "Times that a context window was augmented"),
    sums=("augmentations",),
)

RECALLED = _recall(
    INFO,
    "[MEM:RETRIEVE] Recalled %(result_count)d memories in %(mode)s mode for query '%(query).50s' "
    "in %(latency_ms).1fms",
    None,
    Metric("Queries", "{recall}", "Recalls, by mode", "mode"),
    Metric("Latency", "ms", "One recall"),
    Metric("ResultCount", "{result}", "Memories that were recalled"),
)
RECALLED_BY_TIME = RECALLED._replace(
    line="[MEM:RETRIEVE] Temporal recall found %(result_count)d memories from %(start)s to %(end)s"
)

COMPLETED = _policy(
    DEBUG,
    "Retrieved %(result_count)d memories of %(tokens_used)d tokens for '%(query)s' in "
    "%(latency_ms).1fms%(source)s",
    events.RetrievalPolicyCompletedEvent,
    Metric("latency_ms", "ms", "One run of a retrieval policy, end to end"),
    Metric("results_count", "{result}", "Memories that a run returned"),
    Metric("tokens_used", "{token}", "Tokens of a run's prompt block"),
    Metric(
        "cache_hit_rate",
        "%",
        "100 for a run served from the cache, 0 for another: the mean is the rate",
        fact="cache_hit_rate",
    ),
    Metric("dedup_ratio", "%", "Duplicates among the candidates of a run", fact="dedup_ratio"),
    sums=(
        "runs",
        "from_cache",
        "result_count",
        "tokens_used",
        "candidates",
        "duplicates",
        "latency_ms",
    ),
)
FAILED = COMPLETED._replace(event=events.RetrievalPolicyFailedEvent)
REFUSED = _policy(INFO, "Retrieval for agent %(agent_id)s: %(code)s")
BROKEN = _policy(ERROR, "Retrieval for agent %(agent_id)s: %(code)s (%(cause)s)")
CIRCUIT_CHANGED = _policy(
    INFO, "Circuit of agent %(agent_id)s: %(after)s, was %(before)s", events.CircuitChangedEvent
)

TURN_STARTED = _hyde(DEBUG, sums=("turns",))
TURN_KEPT = _hyde(DEBUG, sums=("cache_hits",))
TURN_ENDED = _hyde(DEBUG, "", events.HypothesesRetrievedEvent, sums=("partial",))
STAGES_FAILED = {
    stage: _hyde(DEBUG, f"{line}: %(cause)s", sums=(stage,))
    for stage, line in {
        "ready": "The index is not ready for agent %(agent_id)s; the turn gets no memories",
        "hypotheses": "The hypotheses of a turn of agent %(agent_id)s failed; it gets no memories",
        "embedding": "The hypotheses of a turn of agent %(agent_id)s got no vectors; it gets no "
        "memories",
        "search": "The search of a turn of agent %(agent_id)s failed; it gets no memories",
        "expansion": "The links of a turn of agent %(agent_id)s were not followed",
        "lineages": "The earlier versions of a turn of agent %(agent_id)s were not read",
        "turn": "A turn of agent %(agent_id)s failed; it gets no memories",
    }.items()
}

METRICS = {
    metric.name: metric
    for row in list(vars().values())
    if isinstance(row, Row)
    for metric in row.metrics
}
"""All metrics but the gauges, by name."""
