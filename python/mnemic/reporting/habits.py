"""Errors of names and uses that objects have in other libraries, and not here.

Each family of classes has a table of names, each with what to write in its place. No name of a
table is part of a class: `dir`, `help`, `hasattr` and mocks do not see it, and nothing here runs
before an attribute is missing or an operation is refused.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn

from mnemic.errors import MissingAttributeError, UnsupportedUseError
from mnemic.reporting.description import quoted
from mnemic.reporting.near_names import suggestion

HIT = {
    **dict.fromkeys(("text", "page_content", "document"), "the text is hit.content"),
    "memory": "the text is hit.content, and the whole memory hit.entry",
    "payload": "the whole memory is hit.entry, and its metadata hit.metadata",
    "distance": "hits have a score, higher is better: hit.score",
    "vector": "memory.get(hit.id, embeddings=True).embedding has it",
}
_SEQUENCE = "results are a sequence of hits: for hit in results, or results[0].content"
_EACH = "results are a sequence of hits: [{} for hit in results]"
RESULTS = {
    **dict.fromkeys(("results", "memories", "matches"), _SEQUENCE),
    "documents": _EACH.format("hit.content"),
    "ids": _EACH.format("hit.id"),
    "distances": _EACH.format("hit.score"),
    "scores": _EACH.format("hit.score"),
    "metadatas": _EACH.format("hit.metadata"),
}
_SEARCHES = "query", "search_memory", "similarity_search"
MEMORY = {
    **dict.fromkeys(("remember", "store", "save"), "write memory.add(content)"),
    **dict.fromkeys(("insert", "add_memory"), "write memory.add(content)"),
    **dict.fromkeys(("add_texts", "add_documents"), "write memory.add_many(texts)"),
    "upsert": "write memory.add_many(memories, on_conflict='replace')",
    **dict.fromkeys(_SEARCHES, "write memory.search(query, limit=…)"),
    "get_all": "write memory.list(), which gives a page of memories",
    "delete_user": "write memory.delete_all(user_id=…)",
    "reset": "memory.delete_all(all_users=True) deletes the memories of all users",
    "persist": "what a call stored is on disk when it returns",
    "history": "memory.linked(id, include_superseded=True) has the earlier version",
}
VECTOR_MAP = {
    "ntotal": "the number of vectors is len(map)",
    **dict.fromkeys(("add", "add_with_ids"), "write map.upsert(ids, vectors)"),
    **dict.fromkeys(("delete", "remove_ids"), "write map.remove(ids)"),
    "query": "write map.search(vector, k)",
    "reconstruct": "write map.get(id)",
    **dict.fromkeys(("d", "dimension", "dimensions"), "the length of a vector is map.dim"),
}
EMBEDDER = {
    **dict.fromkeys(("dim", "dimension"), "the length of a vector is embedder.dimensions"),
    **dict.fromkeys(("encode", "embed_query", "embed_documents"), "write embedder.embed(texts)"),
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
    answer = answers.get(name)
    hint = f"; {answer}"
    if answer is None:
        hint = suggestion(name, [each for each in dir(this) if not each.startswith("_")])
    message = f"{type(this).__name__} has no attribute {quoted(name)}{hint}"
    # With the object Python would add a guess of its own.
    raise MissingAttributeError(message, name=name, obj=None)


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
