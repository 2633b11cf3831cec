"""A process that finds what another one has just written, and answers with a memory of its own."""

import sys

from mnemic.memory import Memory
from tests.support.embedders import WordEmbedder


def main():
    """Read contents from standard input, and print the id of each answer."""
    with Memory(sys.argv[1], embedder=WordEmbedder()) as memory:
        answer = None
        for line in sys.stdin:
            content = line.strip()
            hits = memory.search(content, limit=1)
            assert [hit.content for hit in hits] == [content], (content, hits)
            assert memory.count() == 1, "the last turn was deleted"
            assert answer is None or not memory.restore(answer.id), "and for good"
            answer = memory.add(f"answer to {content}")
            print(answer.id, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
