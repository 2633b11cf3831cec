"""The pages of the reference, and the names with a rule of their own."""

from typing import NamedTuple


class Page(NamedTuple):
    """A page: its file, title and subject, and where its names come from."""

    file: str
    title: str
    about: str
    sources: tuple[str, ...]


PAGES = (
    Page(
        "memory.md",
        "Memory",
        "A memory in one file, with plain calls: everything else leads back here.",
        (
            "mnemic.memory.Memory",
            "mnemic.repository",
            "mnemic.memory",
            "mnemic.verbs",
            "mnemic.index",
        ),
    ),
    Page(
        "async.md",
        "Async",
        "The same memory with calls to be awaited.",
        ("mnemic.async_memory.AsyncMemory", "mnemic.async_memory"),
    ),
    Page(
        "long-term.md",
        "LongTermMemory",
        "The same memory under other names, with one user a call.",
        ("mnemic.compat.long_term",),
    ),
    Page(
        "records.md",
        "Records",
        "What is stored, and what the calls return.",
        (
            "mnemic.model.entry",
            "mnemic.model.hit",
            "mnemic.model.results",
            "mnemic.model",
            "mnemic.records",
            "mnemic.store",
        ),
    ),
    Page(
        "filters.md",
        "Filters",
        "Filters as objects; [the grammar](../../tune/filters.md) is that of dicts.",
        ("mnemic.model.filter", "mnemic.model.filter_values"),
    ),
    Page(
        "ranking.md",
        "Ranking",
        "The parts of a score; [Search](../../explain/search.md) describes them.",
        (
            "mnemic.model.ranking",
            "mnemic.model.hit.Why",
            "mnemic.model.hit.WordMatch",
            "mnemic.verbs.paging",
        ),
    ),
    Page(
        "retrieval.md",
        "Retrieval",
        "Structured queries; see [Retrieval](../retrieval.md).",
        ("mnemic.retrieval", "mnemic.model.query"),
    ),
    Page(
        "hyde.md",
        "HyDE",
        "The memories of a turn, in `mnemic.hyde`; see [the guide](../../build/hyde.md).",
        ("mnemic.hyde.engine", "mnemic.hyde"),
    ),
    Page(
        "policy.md",
        "Policy",
        "From a message to a block for a prompt, in `mnemic.policy`.",
        (
            "mnemic.policy.policy",
            "mnemic.policy",
            "mnemic.model.payload",
            "mnemic.context.redaction",
            "mnemic.context.budget",
            "mnemic.context.prompt_block",
            "mnemic.context.packing",
        ),
    ),
    Page(
        "memory-files.md",
        "Memory files",
        "Memories as Markdown files with front matter, in the distribution `mnemic-files`.",
        ("mnemic_files.memory_files", "mnemic_files"),
    ),
    Page(
        "recall.md",
        "Recall",
        "Recall by mode, time, type and links; see [Recall](../recall.md).",
        ("mnemic.recall", "mnemic.model.recall"),
    ),
    Page(
        "context.md",
        "Context",
        "The context of a language model; see [The context window](../../explain/context.md).",
        ("mnemic.context",),
    ),
    Page(
        "contradictions.md",
        "Contradictions",
        "Judges; see [Contradictions](../../explain/contradictions.md).",
        ("mnemic.contradictions",),
    ),
    Page(
        "embedders.md",
        "Embedders",
        "Texts in, vectors out; see [Embedding](../../tune/embedding.md).",
        ("mnemic.embed",),
    ),
    Page(
        "language-models.md",
        "Language models",
        "Prompts in, answers out; see [Models over HTTP](../../tune/http-models.md).",
        ("mnemic.llm",),
    ),
    Page(
        "encryption.md",
        "Encryption",
        "Keys of sealed memories, and which memories are sealed.",
        ("mnemic.crypto.encryption", "mnemic.crypto"),
    ),
    Page(
        "hosts.md",
        "Hosts",
        "Licences, clocks, ids, files: what a program may supply; and what adapters need.",
        (
            "mnemic.licensing",
            "mnemic.reporting.progress",
            "mnemic.protocols",
            "mnemic.model.any_text",
            "mnemic.threads.sync_bridge",
        ),
    ),
    Page("errors.md", "Errors", "Every error, in `mnemic.errors`.", ("mnemic.errors",)),
    Page(
        "events.md",
        "Events",
        "Every event, in `mnemic.events`.",
        ("mnemic.observability", "mnemic.events"),
    ),
    Page(
        "core.md",
        "Vector core",
        "Vectors and fingerprints without a memory.",
        ("mnemic._core", "mnemic.string_vector_map"),
    ),
)

MADE_BY_CALLS = {
    "AdaptedEmbedder",
    "AsyncScopedMemory",
    "CompactionStrategy",
    "ContextItemType",
    "DeleteResult",
    "Events",
    "LicenseTier",
    "LinkType",
    "MemoryContext",
    "MemoryStatus",
    "MemoryType",
    "Permit",
    "ScopedMemory",
    "StringHits",
    "StringRangeHits",
    "Suggestions",
    "MemoryRetriever",
    "RetrievalService",
}
"""Classes that programs do not construct, enumerations with numbers among them."""

INTERNAL = {
    "AddOutcome.of",
    "BuildContextOptions.budget",
    "CheckedEntry.of",
    "CircuitBreaker.settle",
    "ContextItem.with_changes",
    "Encryption.master_key",
    "MasterKey.derive",
    "MemoryEntry.detached",
    "MemoryEntry.empty",
    "MemoryEntry.is_active",
    "MemoryEntry.is_present",
    "MemoryEntry.record_accesses",
    "MemoryEntry.with_accesses",
    "MemoryEntry.with_embedding",
    "MemoryEntry.with_first_vector",
    "MemoryEntry.with_own_embedding",
    "MemoryEntry.with_vectors",
    "MemoryEntry.without_embedding",
    "MemoryEntryUpdate.applied_to",
    "SalienceWeights.of",
    "RetrievalConfig.overridden",
    "RetrievalRequest.expression",
    "RetrievalSettings.redaction",
    "Scope.has",
    "SearchResults.with_entries",
    "Weights.parse",
}
"""Methods for other modules of the package."""

_JUDGE = "mnemic.contradictions.rule_judge.ContradictionJudge"
_ADDING = "mnemic.verbs.adding.AsyncAddVerbs"
_CHANGES = "mnemic.verbs.changing.AsyncChangeVerbs"
_SEARCHES = "mnemic.verbs.search.AsyncSearchVerbs"
_RETRIEVALS = "mnemic.verbs.retrieval.AsyncRetrievalVerbs"
_RETRIEVAL = "mnemic.retrieval.service.AsyncRetrievalService"
_RECALLS = "mnemic.verbs.recall.AsyncRecallVerbs"
_RECALL = "mnemic.recall.service.AsyncMemoryRetriever"
_FILES = "mnemic_files.memory_files.MemoryFiles"
_VECTORS = "mnemic.string_vector_map.StringVectorMap"
_HYDE = "mnemic.hyde.engine.HydeBase"
_POLICY = "mnemic.policy.policy.AsyncRetrievalPolicy"
_LONG_TERM = "mnemic.compat.long_term.AsyncLongTermMemory"

LIKE = {
    "mnemic.compat.long_term.AsyncLongTermMemory": "mnemic.compat.long_term.LongTermMemory",
    f"{_ADDING}.add": "mnemic.model.entry.MemoryEntry",
    f"{_ADDING}.add_many": f"{_ADDING}.add",
    "mnemic.verbs.adding.AddFields": f"{_ADDING}.add",
    f"{_SEARCHES}.context": f"{_SEARCHES}.search",
    f"{_SEARCHES}.similar": f"{_SEARCHES}.search",
    "mnemic.verbs.maintenance.AsyncAuditVerbs.audit": "mnemic.model.results.AuditRequest",
    f"{_CHANGES}.touch": "mnemic.model.update.MemoryEntryUpdate",
    f"{_CHANGES}.update": "mnemic.model.update.MemoryEntryUpdate",
    f"{_CHANGES}.update_many": f"{_CHANGES}.update",
    "mnemic.verbs.changing.AsyncLinkVerbs.unlink": "mnemic.verbs.changing.AsyncLinkVerbs.link",
    f"{_RETRIEVAL}.retrieve_to_context": f"{_RETRIEVAL}.retrieve",
    f"{_RETRIEVALS}.retrieve": f"{_RETRIEVAL}.retrieve",
    f"{_RETRIEVALS}.retrieve_to_context": f"{_RETRIEVAL}.retrieve_to_context",
    f"{_RETRIEVALS}.expand": f"{_RETRIEVAL}.expand_query",
    f"{_RECALL}.recall": "mnemic.model.recall.RecallOptions",
    f"{_RECALL}.recall_linked": "mnemic.model.recall.RecallOptions",
    f"{_RECALLS}.recall": f"{_RECALL}.recall",
    f"{_RECALLS}.linked": f"{_RECALL}.recall_linked",
    f"{_RECALLS}.contradictions": f"{_RECALL}.find_contradictions",
    f"{_RECALLS}.salience": f"{_RECALL}.salience",
    f"{_RECALLS}.reinforce": f"{_RECALL}.reinforce",
    "mnemic.model.recall.RecallTypeFields": "mnemic.model.recall.RecallOptions",
    "mnemic.model.recall.RecallFields": "mnemic.model.recall.RecallOptions",
    "mnemic.model.recall.AllRecallFields": "mnemic.model.recall.RecallOptions",
    "mnemic.context.items.ItemFields": "mnemic.context.items.ContextItem",
    "mnemic.hyde.engine.HydeTurn": f"{_HYDE}.turn",
    f"{_HYDE}.from_config": "mnemic.hyde.engine.HydeEngine",
    "mnemic.hyde.engine.AsyncHydeTurn": "mnemic.hyde.engine.HydeTurn",
    "mnemic.hyde.engine.AsyncHydeEngine": "mnemic.hyde.engine.HydeEngine",
    "mnemic.embed.local.MiniLmEmbedder": "mnemic.embed.base.Embedder",
    "mnemic.embed.adapting.AdaptedEmbedder": "mnemic.embed.base.Embedder",
    "mnemic.embed.http.HttpEmbedder": "mnemic.embed.base.Embedder",
    "mnemic.llm.adapting.AdaptedLanguageModel": "mnemic.llm.adapting.LanguageModel",
    "mnemic.llm.http.HttpLanguageModel": "mnemic.llm.adapting.LanguageModel",
    "mnemic.retrieval.expansion.CorpusExpander": "mnemic.retrieval.expansion.Expander",
    "mnemic.retrieval.expansion.LanguageModelExpander": "mnemic.retrieval.expansion.Expander",
    "mnemic.retrieval.expansion.SynonymExpander": "mnemic.retrieval.expansion.Expander",
    "mnemic.retrieval.expansion.CorpusSuggester": "mnemic.retrieval.expansion.Suggester",
    "mnemic.retrieval.expansion.LanguageModelSuggester": "mnemic.retrieval.expansion.Suggester",
    "mnemic.async_memory.AsyncMemory": "mnemic.memory.Memory",
    "mnemic.retrieval.service.AsyncRetrievalService": "mnemic.retrieval.service.RetrievalService",
    "mnemic.recall.service.AsyncMemoryRetriever": "mnemic.recall.service.MemoryRetriever",
    "mnemic.verbs.maintenance.AsyncVectorIndex": "mnemic.verbs.maintenance.VectorIndex",
    f"{_POLICY}.trigger": f"{_POLICY}.run",
    f"{_LONG_TERM}.store_batch": f"{_LONG_TERM}.store",
    "mnemic.policy.policy.AsyncRetrievalPolicy": "mnemic.policy.policy.RetrievalPolicy",
    "mnemic.policy.limits.FixedWindow": "mnemic.policy.limits.RateLimiter",
    "mnemic.policy.limits.TokenBucket": "mnemic.policy.limits.RateLimiter",
    "mnemic.context.prompt_block.PromptBlock": "mnemic.context.prompt_block.PromptForm",
    "mnemic.context.prompt_block.NumberedLines": "mnemic.context.prompt_block.PromptForm",
    "mnemic.context.tokens.EstimatedTokens": "mnemic.protocols.TokenCounter",
    "mnemic.context.tokens.TokenizerTokens": "mnemic.protocols.TokenCounter",
    "mnemic.contradictions.rule_judge.RuleJudge": _JUDGE,
    "mnemic.contradictions.language_model.LanguageModelJudge": _JUDGE,
    "mnemic.licensing.DocumentedLicenses": "mnemic.licensing.LicensePolicy",
    f"{_FILES}.synchronise_async": f"{_FILES}.synchronise",
    f"{_FILES}.export_async": f"{_FILES}.export",
    f"{_VECTORS}.upsert": f"{_VECTORS}.replace",
    "mnemic._core.VectorMap.upsert": "mnemic._core.VectorMap.replace",
    "mnemic._core.VectorMap.count": "mnemic._core.VectorMap.search",
    "mnemic._core.VectorMap.load": "mnemic._core.VectorMap.save",
}
"""Where texts of parameters and fields stand that a docstring leaves out: in another function, or
in another class and its methods."""

SHARED = "mnemic.memory.Memory"
"""The class whose docstring has the arguments of many calls, under `SHARED_TITLE`."""

SHARED_TITLE = "Arguments of many calls"

SHARED_BY = ("mnemic.verbs", "mnemic.memory", "mnemic.async_memory", "mnemic.compat")
"""Where these arguments are meant by their names; those of a scope are so everywhere."""

SCOPE = {"user_id", "project_id", "session_id", "all_users"}
