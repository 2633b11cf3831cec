"""Times of the store beside Haystack's own in memory: `python -m haystack_times`."""

import random
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever as Theirs
from haystack.dataclasses import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.mnemic import (
    MnemicEmbeddingRetriever,
    MnemicHybridRetriever,
)
from haystack_integrations.document_stores.mnemic import MnemicDocumentStore

DOCUMENTS, BATCH, DIMENSIONS, ROUNDS = 5000, 100, 384, 50


def drawn():
    draw = random.Random(0)  # noqa: S311 - the same each time
    return [
        Document(
            id=str(at),
            content=f"document {at} of {DOCUMENTS}",
            meta={"n": at % 20},
            embedding=[draw.gauss(0, 1) for _ in range(DIMENSIONS)],
        )
        for at in range(DOCUMENTS)
    ]


def median(call, rounds=ROUNDS):
    """Milliseconds of a call."""
    spent = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        spent.append(time.perf_counter() - started)
    return 1000 * statistics.median(spent)


def measured(store, near, words, documents):
    started = time.perf_counter()
    for at in range(0, DOCUMENTS, BATCH):
        store.write_documents(documents[at : at + BATCH])
    yield f"write {DOCUMENTS:,}, {BATCH} a call", 1000 * (time.perf_counter() - started)
    chosen = {"field": "meta.n", "operator": "==", "value": 7}
    near(documents[0], None)  # what is loaded by the first one
    words(documents[0])
    first, second, third = (iter(documents) for _ in range(3))
    yield "by embedding", median(lambda: near(next(first), None))
    yield "by embedding, filter", median(lambda: near(next(second), chosen))
    yield "by words", median(lambda: words(next(third)))
    yield "filter, 250 documents", median(lambda: store.filter_documents(chosen), 20)
    yield "count by filter", median(lambda: store.count_documents_by_filter(chosen), 20)
    yield "unique values", median(lambda: store.get_metadata_field_unique_values("n"), 3)
    added = iter(range(ROUNDS))
    yield "write one", median(lambda: store.write_documents([Document(content=f"{next(added)}")]))


def main():
    documents = drawn()
    with TemporaryDirectory() as folder:
        store = MnemicDocumentStore(str(Path(folder, "mnemic.db")))
        near, hybrid = MnemicEmbeddingRetriever(store), MnemicHybridRetriever(store)
        ours = dict(
            measured(
                store,
                lambda each, chosen: near.run(each.embedding, filters=chosen),
                lambda each: hybrid.run(each.content),
                documents,
            )
        )
        each = iter(documents)
        both = median(lambda: hybrid.run((found := next(each)).content, found.embedding))
        ours["by words and embedding"] = both
        store.close()
    memory = InMemoryDocumentStore(embedding_similarity_function="cosine")
    beside, bm25 = Theirs(memory), InMemoryBM25Retriever(memory)
    theirs = dict(
        measured(
            memory,
            lambda each, chosen: beside.run(each.embedding, filters=chosen),
            lambda each: bm25.run(each.content),
            documents,
        )
    )
    print(f"{'milliseconds':<30}{'mnemic':>10}{'in memory':>12}")
    for name, spent in ours.items():
        other = f"{theirs[name]:>12.2f}" if name in theirs else ""
        print(f"{name:<30}{spent:>10.2f}{other}")


if __name__ == "__main__":
    main()
