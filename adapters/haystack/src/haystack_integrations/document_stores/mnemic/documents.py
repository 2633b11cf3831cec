"""Documents as memories, and Haystack's filters as mnemic's."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from haystack.dataclasses import Document
from haystack.errors import FilterError

from mnemic import MemoryEntry, MemoryFilter
from mnemic.adapters import named_id

_IDS = UUID("6a0c1f0e-6c5f-5d1e-9a53-0d6f0a0f6a43")
_OWN = "_haystack_document"  # the key of the metadata for fields that memories do not have
_OWN_FIELDS = {"id", "blob", "sparse_embedding"}
_TESTS = {"==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


def entry_id(document_id: str) -> UUID:
    """Return the id of a document's memory; Haystack's ids are any texts."""
    return named_id(_IDS, document_id)


def checked(meta: dict[str, Any]) -> dict[str, Any]:
    """Return metadata of a document, unless they have the key that is the store's own."""
    if _OWN in meta:
        raise ValueError(f"meta has the key {_OWN!r}, which is the store's own; rename it")
    return meta


def entry_of(document: Document) -> MemoryEntry:
    """Return a document as a new memory; a text of white space alone is kept in its metadata."""
    own = replace(document, embedding=None, score=None, meta={}).to_dict(flatten=False)
    made: Callable[..., MemoryEntry] = MemoryEntry.empty
    if (document.content or "").strip():
        made = partial(MemoryEntry, own.pop("content"))
    metadata = {**checked(document.meta), _OWN: own}
    return made(id=entry_id(document.id), metadata=metadata, embedding=document.embedding)


def document_of(entry: MemoryEntry, score: float | None = None) -> Document:
    """Return a memory as a document, with its vector if the memory was read with it."""
    meta = dict(entry.metadata)
    own = {"id": str(entry.id), "content": entry.content, **meta.pop(_OWN, {})}
    vector = None if entry.embedding is None else entry.embedding.tolist()
    return Document.from_dict({**own, "meta": meta, "embedding": vector, "score": score})


def filters_of(filters: Mapping[str, Any] | None) -> MemoryFilter | None:
    """Return a filter of Haystack's grammar as mnemic's.

    Raises:
        haystack.errors.FilterError: If it is none, or is larger than mnemic's may be.
    """
    try:
        return MemoryFilter(filters=_tree(filters)) if filters else None
    except (ValueError, RecursionError) as error:
        raise FilterError(str(error)) from error


def _tree(condition: Any) -> dict[str, Any]:
    match condition:
        case {"operator": "NOT", "conditions": _}:
            return {"NOT": _tree({**condition, "operator": "AND"})}
        case {"operator": "AND" | "OR" as operator, "conditions": list(parts)}:
            return {operator: [_tree(part) for part in parts]}
        case {"field": str(field), "operator": "in", "value": list(values)}:
            return {"NOT": _at(field, "nin", values)}  # with null it finds what is missing
        case {"operator": "not in", "value": _}:
            return {"NOT": _tree({**condition, "operator": "in"})}
        case {"field": str(field), "operator": str(name), "value": value} if name in _TESTS:
            if isinstance(value, str) and name[0] in "<>":
                datetime.fromisoformat(value)  # other texts have no order in Haystack
            return _at(field, _TESTS[name], value)
    raise FilterError(
        "a condition has a field, an operator and a value (of 'in' and 'not in' a list), or a "
        "logical operator and a list of conditions"
    )


def _at(field: str, name: str, value: Any) -> dict[str, Any]:
    if field == "content":
        return {field: {name: value if name.startswith(("g", "l")) else _stored(value)}}
    test: dict[str, Any] = {name: value}
    first, *path = field.split(".")
    if first != "meta":
        path = [*([_OWN] if first in _OWN_FIELDS else []), first, *path]
    for key in reversed(path):
        test = {f"\\{key}": test}  # the backslash makes a key of an operator's name, too
    return {"metadata": test}


def _stored(content: Any) -> Any:
    """Return contents as memories have them: blank ones are empty."""
    if isinstance(content, list):
        return [_stored(each) for each in content]
    return "" if content is None or str(content).isspace() else content
