"""Times of the store beside LangChain's own in memory: `python -m langchain_times`."""

import random
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_mnemic import MnemicRetriever, MnemicVectorStore

DOCUMENTS, BATCH, DIMENSIONS, ROUNDS = 5000, 100, 384, 100


class Drawn(Embeddings):
    """Has a vector for each text before it is asked, so that no embedding is measured."""

    model = "drawn"

    def __init__(self, texts):
        draw = random.Random(0)  # noqa: S311 - the same each time
        self.vectors = {text: [draw.gauss(0, 1) for _ in range(DIMENSIONS)] for text in texts}
        self.first = self.vectors[texts[0]]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return self.vectors.get(
            text, self.first
        )  # mnemic asks once for the length, by its own text


def median(call, rounds=ROUNDS):
    """Milliseconds of a call."""
    spent = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        spent.append(time.perf_counter() - started)
    return 1000 * statistics.median(spent)


def measured(store, texts, conditions):
    metadatas = [{"n": at % 20} for at in range(DOCUMENTS)]
    started = time.perf_counter()
    for at in range(0, DOCUMENTS, BATCH):
        store.add_texts(texts[at : at + BATCH], metadatas[at : at + BATCH])
    yield f"add {DOCUMENTS:,}, {BATCH} a call", 1000 * (time.perf_counter() - started)
    store.similarity_search(texts[0])  # what is loaded by the first one
    each, filtered, diverse, added = (iter(texts) for _ in range(4))
    yield "search", median(lambda: store.similarity_search(next(each)))
    yield (
        "search with a filter",
        median(lambda: store.similarity_search(next(filtered), filter=conditions)),
    )
    yield "mmr", median(lambda: store.max_marginal_relevance_search(next(diverse)))
    yield "add one", median(lambda: store.add_texts([next(added)]))


def main():
    texts = [f"document {at} of {DOCUMENTS}" for at in range(DOCUMENTS)]
    embedding = Drawn(texts)
    with TemporaryDirectory() as folder:
        store = MnemicVectorStore(embedding, Path(folder, "mnemic.db"))
        ours = dict(measured(store, texts, {"n": 7}))
        retriever, queries = MnemicRetriever(memory=store.memory), iter(texts)
        ours["retriever, words and meaning"] = median(lambda: retriever.invoke(next(queries)))
        store.close()
    there = measured(InMemoryVectorStore(embedding), texts, lambda each: each.metadata["n"] == 7)
    theirs = dict(there)
    print(f"{'milliseconds':<30}{'mnemic':>10}{'in memory':>12}")
    for name, spent in ours.items():
        beside = f"{theirs[name]:>12.2f}" if name in theirs else ""
        print(f"{name:<30}{spent:>10.2f}{beside}")


if __name__ == "__main__":
    main()
