"""Errors of names and uses that objects have in other libraries, and not here.

Each family of classes has a table of names, each with what to write in its place. No name of a
table is part of a class: `dir`, `help`, `hasattr` and mocks do not see it, and nothing here runs
before an attribute is missing or an operation is refused.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NoReturn

from mnemic.errors import MissingAttributeError, UnsupportedUseError
from mnemic.reporting.description import quoted
from mnemic.reporting.near_names import suggestion

OTHERWISE = ""
"""The key of what a table says of a name that it has not, and that is near none of the object."""


def _rows(names: str, answer: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), answer)


_NO_VECTOR = "memory.get(hit.id, embeddings=True).embedding has it"
HIT = {
    **_rows("text page_content document doc node value", "the text is hit.content"),
    "memory": "the text is hit.content, and the whole memory hit.entry",
    "payload": "the whole memory is hit.entry, and its metadata hit.metadata",
    **_rows("distance relevance rank", "hits have a score, higher is better: hit.score"),
    **_rows("vector embedding", _NO_VECTOR),
    **_rows("explain reason reasons", "search with explain=True, and read hit.why"),
    **_rows("get keys items dict model_dump", "hit.to_dict() is a dict"),
    OTHERWISE: "its fields are attributes, such as hit.content and hit.score",
}
_SEQUENCE = "results are a sequence of hits: for hit in results, or results[0].content"
_EACH = "results are a sequence of hits: [{} for hit in results]"
RESULTS = {
    **_rows("append extend sort pop", "list(results) is a list"),
    **_rows("documents texts contents", _EACH.format("hit.content")),
    "ids": _EACH.format("hit.id"),
    **_rows("distances scores", _EACH.format("hit.score")),
    "metadatas": _EACH.format("hit.metadata"),
    **_rows("df to_df to_dataframe", "write results.to_pandas()"),
    **_rows("next next_page", "write memory.list(cursor=page.cursor)"),
    OTHERWISE: _SEQUENCE,
}
ADDED = {OTHERWISE: "it is a list of memories: [memory.id for memory in added]"}
STATS = {OTHERWISE: "print(stats.to_dict()) shows its fields"}
CONTEXT = {OTHERWISE: "it is a text itself, for a prompt; context.hits are the cited memories"}
_ADDS = "remember store save insert add_memory memorize learn write put append create save_context"
_ADDS_MANY = "add_texts add_documents add_memories add_messages add_batch bulk_add extend add_all"
_SEARCHES = (
    "query search_memory search_memories similarity_search similarity_search_with_score find "
    "lookup invoke get_relevant_documents as_retriever as_query_engine ask"
)
_LISTS = "get_all get_memories get_messages all items keys values peek to_list"
_COLLECTIONS = "collection create_collection get_collection get_or_create_collection namespace"
_OPENS = "open connect load from_config from_texts from_documents load_local"
APART = "agents of one file are apart: name one by agent_id, or a user by memory.scoped(user_id=…)"
MEMORY = {
    **_rows(_ADDS, "write memory.add(content)"),
    **_rows(_ADDS_MANY, "write memory.add_many(texts)"),
    "upsert": "write memory.add_many(memories, on_conflict='replace')",
    **_rows(_SEARCHES, "write memory.search(query, limit=…)"),
    **_rows("similarity_search_by_vector vector_search", "write memory.search(vector=…)"),
    **_rows(_LISTS, "write memory.list(), which gives a page of memories"),
    **_rows("get_memory read fetch", "write memory.get(id)"),
    **_rows("edit modify change", "write memory.update(id, …)"),
    **_rows("remove forget delete_memory", "write memory.delete(id)"),
    **_rows("delete_user clear forget_all", "write memory.delete_all(user_id=…)"),
    "reset": "memory.delete_all(all_users=True) deletes the memories of all users",
    **_rows("persist flush commit save_local", "what a call stored is on disk when it returns"),
    "history": "memory.linked(id, include_superseded=True) has the earlier version",
    **_rows("chat summarize load_memory_variables", "memory.context(query) is a text for a prompt"),
    **_rows(_COLLECTIONS, APART),
    **_rows(_OPENS, "write Memory(path)"),
    **_rows("user_id project_id session_id", "memory.scope has it"),
    **_rows("size total", "memory.count() counts the memories"),
    OTHERWISE: "its calls are add, add_many, search, context, list, get, update, delete, "
    "delete_all, export and import_; help(Memory) has all",
}
VECTOR_MAP = {
    "ntotal": "the number of vectors is len(map)",
    **_rows("add add_with_ids add_items", "write map.upsert(ids, vectors)"),
    **_rows("delete remove_ids", "write map.remove(ids)"),
    **_rows("query knn_query get_nns_by_vector", "write map.search(vector, k)"),
    "reconstruct": "write map.get(id)",
    "write": "write map.save(path)",
    **_rows("d dimension dimensions", "the length of a vector is map.dim"),
    **_rows("train is_trained build", "a stored vector is found at once, without training"),
    OTHERWISE: "it has upsert, search, get, remove, save and load",
}
EMBEDDER = {
    **_rows(
        "dim dimension get_sentence_embedding_dimension",
        "the length of a vector is embedder.dimensions",
    ),
    **_rows("encode embed_query embed_documents", "write embedder.embed(texts)"),
    OTHERWISE: "texts are embedded by embedder.embed(texts)",
}


class AnswersHabits:
    """An object that answers the names that its kind has in other libraries.

    Attributes:
        _habits: A table: what to write in place of those names.
    """

    __slots__ = ()

    _habits: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            return attribute(self, name, self._habits)


class NotPickled:
    """An object that stays in its process, as one that is open or has a key.

    Attributes:
        _not_pickled: What is said of it, in which `{name}` is its class.
    """

    __slots__ = ()

    _not_pickled: ClassVar[str] = (
        "{name} cannot be pickled or copied, because its key would be; make it in the process that "
        "uses it"
    )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied deeply."""
        raise UnsupportedUseError(self._not_pickled.format(name=type(self).__name__))


def attribute(this: object, name: str, answers: Mapping[str, str]) -> object:
    """Raise the error of an attribute that an object does not have.

    Args:
        this: The object.
        name: The attribute. Of private ones, which protocols ask for, the error is Python's own.
        answers: A table.

    Returns:
        The value, if it is there at the second look-up.

    Raises:
        MissingAttributeError: If it is not.
    """
    if name.startswith("_") or hasattr(type(this), name):  # a property raised AttributeError
        value: object = object.__getattribute__(this, name)
        return value
    raise missing(type(this), name, dir(this), answers)


def missing(
    kind: type, name: str, known: Sequence[str], answers: Mapping[str, str]
) -> MissingAttributeError:
    """Return the error of an attribute that a class, or an object of it, does not have.

    Args:
        kind: The class.
        name: The attribute.
        known: The attributes that there are.
        answers: A table.
    """
    hint = f"; {answers[name]}" if name in answers else ""
    hint = hint or suggestion(name, [each for each in known if not each.startswith("_")])
    hint = hint or f"; {answers[OTHERWISE]}" if OTHERWISE in answers else hint
    message = f"{kind.__name__} has no attribute {quoted(name)}{hint}"
    # With the object Python would add a guess of its own.
    return MissingAttributeError(message, name=name, obj=None)


def attribute_of_vector_map(this: object, name: str) -> object:
    """Raise the error of an attribute that no vector map has; the core calls this too."""
    return attribute(this, name, VECTOR_MAP)


def item(this: object, key: object, answer: str) -> UnsupportedUseError:
    """Return the error of an item of an object that has none by such a key.

    Args:
        this: The object.
        key: What stood in the brackets.
        answer: What to write in its place.
    """
    return UnsupportedUseError(f"{type(this).__name__} has no item for {quoted(key)}; {answer}")


def item_of_record(
    this: object, key: object, noun: str, answers: Mapping[str, str]
) -> UnsupportedUseError:
    """Return the error of an item of a record, whose fields are attributes.

    Args:
        this: The record.
        key: What stood in the brackets.
        noun: How the answer calls the record, such as "hit".
        answers: A table.
    """
    if isinstance(key, str) and hasattr(this, key):
        return item(this, key, f"write {noun}.{key}")
    answer = answers.get(key) if isinstance(key, str) else None
    fields = f"its fields are attributes, such as {noun}.content, and {noun}.to_dict() is a dict"
    return item(this, key, answer or fields)
