"""What callers write in place of a right argument, and what they are told.

Nothing here is read before a call has failed.
"""

from collections.abc import Mapping

from mnemic.reporting.habits import APART

OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    "content": ("text", "message", "memory", "document", "body"),
    "query": ("text", "message", "q", "question", "prompt"),
    "limit": ("k", "n", "top_k", "top_n", "n_results", "max_results", "size"),
    "k": ("n", "top_k", "n_results", "limit"),
    "filters": ("where", "conditions"),
    "allow": ("filter", "filters", "where", "ids"),
    "since": ("after", "from_date", "start_date"),
    "until": ("before", "to_date", "end_date"),
    "min_score": ("threshold", "cutoff", "score_threshold"),
    "expires_at": ("ttl",),
    "created_at": ("timestamp", "date", "time"),
    "user_id": ("uid", "owner", "tenant"),
    "dim": ("d", "dimension", "dimensions"),
    "id": ("memory_id", "entry_id", "key"),
    "embedder": ("embedding_function", "model", "encoder"),
    "path": ("filename", "file", "url", "database", "db", "persist_directory", "directory"),
    "search_type": ("mode", "kind"),
    "prefix": ("startswith", "starts_with"),
    "contains": ("like", "includes", "has"),
    "nin": ("not_in", "notin"),
}
"""Words of other libraries for names here, which they are not near to by their letters."""

_SCOPE = "bind it, memory = Memory(path).scoped({name}=…), or name it in each call"
_LENGTH = "the embedder has the length of its vectors; a map of vectors alone is VectorMap(dim)"

_FIELDS = "message_id", "position", "category", "scope", "source", "embedding", "expires_at"
_FIELD = "it is a field of an entry: memory.add(MemoryEntry(…, {name}=…))"
_OF_MANY = "add_many takes it: memory.add_many([…], {name}=…)[0]"
_FALLS_BACK = (
    "without the embedder it is answered by keywords, which `degraded` of the results tells; "
    "memory.retrieve(…, on_embed_error='raise') raises"
)
_WITHOUT_TOTAL_AND_VECTORS = {
    "total": "memory.count(filters=…) and memory.retrieve(…, total=True) count",
    "embeddings": "for vectors call memory.get_many(ids, embeddings=True)",
}

ADVICE: Mapping[str, Mapping[str, str]] = {
    "Memory": {
        **dict.fromkeys(("user_id", "session_id"), _SCOPE),
        "project_id": "bind it: memory = Memory(path).scoped(project_id=…)",
        **dict.fromkeys(("collection", "collection_name", "namespace", "name"), APART),
        **dict.fromkeys(("dim", "dimension", "dimensions"), _LENGTH),
        "api_key": "the embedder has the key: embedder=HttpEmbedder(model, base_url=…, api_key=…)",
        "key": "give encryption=Encryption(key) for sealed memories, or a service's key to "
        "HttpEmbedder(…, api_key=…)",
        "config": "options are arguments: Memory(path, **config)",
    },
    "Memory.*": {
        "project_id": "a project is bound, not passed: memory.scoped(project_id=…).{method}(…)"
    },
    "Memory.add": {
        **dict.fromkeys(_FIELDS, _FIELD),
        "embed": "it is a key of a dict: memory.add({{'content': …, 'embed': …}})",
        **dict.fromkeys(("on_conflict", "on_embed_error"), _OF_MANY),
    },
    "Memory.search": {
        "weights": "give them as ranking={{'relevance': …, 'recency': …}}",
        "min_similarity": "it is a field of a ranking: ranking=Ranking(min_similarity=…)",
        "on_embed_error": _FALLS_BACK,
        **_WITHOUT_TOTAL_AND_VECTORS,
    },
    "Memory.context": {
        "min_similarity": "min_score is its floor",
        "on_embed_error": _FALLS_BACK,
    },
    "Memory.similar": _WITHOUT_TOTAL_AND_VECTORS,
    "Memory.recent": _WITHOUT_TOTAL_AND_VECTORS,
    "Memory.important": _WITHOUT_TOTAL_AND_VECTORS,
}
"""What is said of an argument that a call has not, by the call and the argument.

A call is `Memory` or `Memory.search`, for the coroutine interfaces and views too, and `Memory.*` is
every method. `{name}` is the argument, `{method}` the method.
"""


def advice(call: str, name: str) -> str | None:
    """Return what to do in place of an argument that a call has not, if it is known.

    Args:
        call: The public name of a class or a method.
        name: The argument.
    """
    kind, dot, method = call.removeprefix("Async").removeprefix("Scoped").partition(".")
    for each in (f"{kind}{dot}{method}", f"{kind}{dot}*"):
        said = ADVICE.get(each, {}).get(name)
        if said is not None:
            return said.format(name=name, method=method)
    return None
