"""The main interface: a memory in one file, used with plain calls."""

import os
from datetime import tzinfo
from typing import TYPE_CHECKING, cast

from mnemic.async_memory import AsyncMemory, AsyncScopedMemory
from mnemic.model import EmbeddingModel
from mnemic.model.time_zones import checked_time_zone
from mnemic.reporting.near_names import checks_arguments
from mnemic.threads.sync_bridge import sync_method
from mnemic.verbs.base import ScopedBase
from mnemic.verbs.maintenance import VectorIndex
from mnemic.verbs.opening import PlainHandle

if TYPE_CHECKING:
    from mnemic.verbs.adding import Add


class ScopedMemory(ScopedBase):
    """A memory with a part of the scope bound: the calls of `Memory` that are not for a whole file.

    A call cannot name a bound part otherwise, and a view cannot be widened.
    """

    @checks_arguments
    def scoped(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        time_zone: str | tzinfo | None = None,
    ) -> "ScopedMemory":
        """Return a memory with more bound: a user, a project, a session or a `time_zone`."""
        narrowed = self._scope.narrowed(user_id, project_id, session_id)
        zone = checked_time_zone(time_zone) or self._own_time_zone
        return ScopedMemory(self._repository, narrowed, self._services, zone)

    @property
    def aio(self) -> AsyncScopedMemory:
        """The same view with coroutine methods; the same object each time."""
        return self._other_form(AsyncScopedMemory)

    add = cast("Add", sync_method(AsyncScopedMemory.add))
    add_many = sync_method(AsyncScopedMemory.add_many)
    add_document = sync_method(AsyncScopedMemory.add_document)
    delete_document = sync_method(AsyncScopedMemory.delete_document)
    search = sync_method(AsyncScopedMemory.search)
    retrieve = sync_method(AsyncScopedMemory.retrieve)
    retrieve_to_context = sync_method(AsyncScopedMemory.retrieve_to_context)
    suggest = sync_method(AsyncScopedMemory.suggest)
    expand = sync_method(AsyncScopedMemory.expand)
    recall = sync_method(AsyncScopedMemory.recall)
    linked = sync_method(AsyncScopedMemory.linked)
    salience = sync_method(AsyncScopedMemory.salience)
    reinforce = sync_method(AsyncScopedMemory.reinforce)
    contradictions = sync_method(AsyncScopedMemory.contradictions)
    context = sync_method(AsyncScopedMemory.context)
    similar = sync_method(AsyncScopedMemory.similar)
    recent = sync_method(AsyncScopedMemory.recent)
    important = sync_method(AsyncScopedMemory.important)
    get = sync_method(AsyncScopedMemory.get)
    get_many = sync_method(AsyncScopedMemory.get_many)
    list = sync_method(AsyncScopedMemory.list)
    count = sync_method(AsyncScopedMemory.count)
    distinct = sync_method(AsyncScopedMemory.distinct)
    stats = sync_method(AsyncScopedMemory.stats)
    audit = sync_method(AsyncScopedMemory.audit)
    purge = sync_method(AsyncScopedMemory.purge)
    update = sync_method(AsyncScopedMemory.update)
    update_many = sync_method(AsyncScopedMemory.update_many)
    delete = sync_method(AsyncScopedMemory.delete)
    delete_many = sync_method(AsyncScopedMemory.delete_many)
    delete_all = sync_method(AsyncScopedMemory.delete_all)
    restore = sync_method(AsyncScopedMemory.restore)
    touch = sync_method(AsyncScopedMemory.touch)
    link = sync_method(AsyncScopedMemory.link)
    unlink = sync_method(AsyncScopedMemory.unlink)
    links = sync_method(AsyncScopedMemory.links)
    export = sync_method(AsyncScopedMemory.export)
    import_ = sync_method(AsyncScopedMemory.import_)


class Memory(PlainHandle, ScopedMemory):
    """A long-term memory in one file, or in PostgreSQL.

    Example:
        >>> with Memory(":memory:") as memory:  # doctest: +SKIP
        ...     memory.add("Prefers metric units", user_id="alice")
        ...     memory.search("which units?", user_id="alice")[0].content
        'Prefers metric units'

    Ten calls do what most programs need:

    - `Memory(path)` opens a memory; `with` closes it.
    - `scoped(user_id=…)` has the same calls, for one user, project or session.
    - `add(text)` stores a memory.
    - `add_many(texts)` stores several, all or none.
    - `search(query)` finds memories by meaning and words.
    - `context(query)` makes one text of them, for a prompt.
    - `list()` returns all, page by page; `get(id)` one.
    - `update(id, …)` changes one.
    - `delete(id)` deletes one; `delete_all()` all of a user, or of a session.
    - `export(path)` and `import_(path)` write and read JSON Lines.

    Then come `contradictions`, `restore`, `users`, `stats`, `backup`, `reembed` and `rotate_key`;
    all others are for special needs.

    A call without a user, bound or given, sees only memories without a user. An id gives no access
    by itself: outside the scope it does not exist. Several memories, in one process or in many, may
    have the same file open; each sees the others' writes in its next call. Calls may come from
    several threads at once, and run in the caller's thread. What is written is on disk on return,
    and calls for many memories change all or none, those that match at the moment of the write; on
    a full disk permanent deletions go in parts.

    Args:
        path: A file, made if there is none, for its owner alone; ":memory:"; or a PostgreSQL URL.
        agent_id: Whose memory it is. Agents in one file never see each other's memories.
        expander: Adds terms to the queries of `retrieve` and `expand`: a function from a text to
            texts, a dict of synonyms, or an object with `expand`; else words of the memories.
        options: Those that follow; `mnemic.annotations.Options` describes them at length.

    Options:
        embedder: A function or an object that embeds texts, or None; default the local MiniLM.
        embedding_model: Name of the embedder's model, where it has none of its own; default None.
        query_cache: Number of queries whose vectors are kept in memory; default 1,024.
        language: ISO 639-1 code of memories and queries, None for none; default "auto", detected.
        license: The host's license policy; default None, which allows everything.
        quota: Bytes of content that the agent may store; default None, no limit.
        user_quota: Bytes of content of each user, or a function of the user id; default None.
        max_entries: Number of memories that the agent may store; default None.
        user_max_entries: Number of memories that each user may store, or a function; default None.
        when_full: "refuse" what exceeds a limit, or "evict" the least important; default "refuse".
        retention: How long a deleted memory can be restored, None for ever; default 90 days.
        clock: Gives the time; default the system's.
        time_zone: Zone of named days, naive times and dates in prompts; default the stored one.
        id_factory: Makes an id for a time; default UUIDs of version 7.
        log_content: Show queries in logs and events; default False.
        track_access: Count reading a memory by its id as an access; default True.
        read_only: Change nothing of the file; default False.
        progress: Called while the index is loaded; default None.
        max_stale: Seconds of answers without a PostgreSQL server that is away; default 60.
        index_pool: Bounds the memory that several indexes take; default None, for files.
        search_in: Search a PostgreSQL memory in "memory" or in the "database"; default "auto".
        exact_limit: Number of memories in a scope up to which all are compared; default 200,000.
        index: How the nearest vectors are found: "exact", "faiss" or "auto"; default "exact".
        snapshots: Keep snapshots of the index beside the file, to open it faster; default True.
        encryption: An `Encryption`, which seals sensitive memories; default None.
        row_security: Keep agents apart by policies of PostgreSQL too; default False.
        on_recalled: "store", "flag" or "refuse" a memory that repeats results; default "store".
        slow_embedding: Seconds to embed a memory above which a warning is logged; default 0.5.
        reembed: After a change of the model, embed all again in the background; default False.

    Arguments of many calls:
        id, ids: Which memory or memories: UUIDs, or their texts.
        user_id: Whose memories; None is those stored without a user, not everybody's.
        project_id: Only memories of this project.
        session_id: Only memories of this session.
        all_users: The memories of all users; goes with no `user_id`, bound or given.
        filters: Only memories that match, as `{"tags": {"any": ["work"]}}`; the grammar is in
            docs/tune/filters.md.
        since: Only memories created then or later; a text is ISO 8601.
        until: Only memories created before.
        prefix: Only texts that begin with it, exactly.
        limit: How many at most.
        offset: How many to skip before them.
        types: Only links of these types; None is all.
        direction: Links "out" from the memory, "in" to it, or "both".
        include_deleted: Those that can be restored, and expired ones, too.
        permanent: Delete records, vectors and links too; otherwise they can be restored.
        embeddings: Return memories with their vectors in `embedding`, shape (d,) or (chunks, d).
        on_embed_error: "raise", or "pending": store it, and embed it once the embedder answers.
        timeout: The seconds that the call may take; None is no limit.
        on_timeout: If late, "raise", or return what is complete, marked as `partial` ("partial").
        name: Of a document, the only one of it within the scope, such as a path or a URL.
        time_zone: Of named days, naive times and dates in prompts: a zone, or its name.
        progress: Called with the numbers done and of all, or True for a bar.

    Raises:
        MissingExtraError: On opening, if the local embedder is wanted and not installed.
        StoreFileError: On opening, if the path cannot be used or holds something else.
        SchemaVersionError: On opening, if a newer mnemic wrote it; or an earlier, if `read_only`.
        EmbeddingModelMismatchError: If vectors are of another model, or have another length.
        InvalidArgumentError: If an argument is wrong; `InvalidEntryError` if a memory's field is.
        FilterError: If a filter or a time cannot be understood; the message names the place.
        EntryNotFoundError: If the scope has no memory of this id; the message names the scope.
        DuplicateEntryError: If the user has this id already, or used a retry key for another text.
        AmbiguousIdError: If several users have a memory of this id, and all are included.
        DeadlineExceededError: If the timeout passes, unless `on_timeout` is "partial".
        EmbedderRequiredError: If a text needs a vector, and there is no embedder.
        EmbeddingError: If the embedder fails; nothing is stored then.
        StorageQuotaExceededError: If there is no capacity left; nothing is stored then.
        LicenseRestrictionError: If the license policy does not include the call.
        ReadOnlyError: If a memory opened with `read_only` would be written.
        StoreError: If the file cannot be read or written; nothing is stored then. If it is damaged
            it is a `StoreCorruptError`, if a server is unreachable a `StoreUnavailableError`.
    """

    @property
    def aio(self) -> AsyncMemory:
        """The same memory with coroutine methods, one object; closing either closes both."""
        return self._other_form(AsyncMemory)

    @property
    def index(self) -> VectorIndex:
        """The index of this agent's memories: how far it is built, and how much it finds."""
        return VectorIndex(self._repository)

    @staticmethod
    @checks_arguments
    def model_of(path: str | os.PathLike[str], agent_id: str = "default") -> EmbeddingModel | None:
        """Return the embedding model of an agent's vectors in a file; None if it has no vectors.

        Args:
            path: The file, which is only read; no embedder is needed.
            agent_id: Whose vectors.
        """
        from mnemic.repository.vector_model import stored_model  # noqa: PLC0415 - seldom used

        return stored_model(path, agent_id)

    retrieval_stats = sync_method(AsyncMemory.retrieval_stats)
    users = sync_method(AsyncMemory.users)
    erase_pending = sync_method(AsyncMemory.erase_pending)
    drop_vectors = sync_method(AsyncMemory.drop_vectors)
    reembed = sync_method(AsyncMemory.reembed)
    rotate_key = sync_method(AsyncMemory.rotate_key)
    forget_agent = sync_method(AsyncMemory.forget_agent)
    backup = sync_method(AsyncMemory.backup)
    verify = sync_method(AsyncMemory.verify)
