"""A chat with a long-term memory: `python examples/chat.py [MEMORY_FILE]`, offline.

It reads one turn a line from standard input. A retrieval policy turns each turn into a block of
memories for the prompt, without personal data and within a budget of tokens. If the memory fails,
the chat goes on. The "model" is a stand-in: it shows the memories that its prompt
holds. With a file as argument, the next run remembers this one.
"""

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from mnemic import Memory, ScopedMemory
from mnemic.errors import MnemicError
from mnemic.policy import Redaction, RetrievalConfig, RetrievalPolicy, RetrievalRequest

CONFIG = RetrievalConfig(max_tokens=300, redaction=Redaction(enabled=True))
PROMPT = """You help one person.

{memories}
The person says: {said}"""


def model(prompt: str) -> str:
    """Stand in for a language model: give back the memories in the prompt."""
    known = [line.partition(": ")[2] for line in prompt.splitlines() if line.startswith("[")]
    return f"I remember: {' | '.join(known)}" if known else "I remember nothing about that."


def chat(memory: Memory, user_id: str, turns: Iterable[str]) -> Iterator[str]:
    """Answer each turn with the help of the memories, and store it."""
    mine = memory.scoped(user_id=user_id, session_id="terminal")
    policy = RetrievalPolicy(memory, CONFIG)
    for turn in turns:
        said = turn.strip()
        if not said:
            continue
        payload = policy.run(RetrievalRequest(said, user_id, "terminal"))
        yield model(PROMPT.format(memories=payload.prompt, said=said))
        try:
            yield from remember(mine, said)
        except MnemicError:
            yield "(I could not store that.)"


def remember(mine: ScopedMemory, said: str) -> Iterator[str]:
    """Store a turn, and give back what it contradicts."""
    for earlier in mine.contradictions(said, limit=1):
        yield f"(That contradicts: {earlier.content})"
    mine.add(said, type="conversation", role="user")


def main() -> None:
    """Chat until standard input ends."""
    path = sys.argv[1] if len(sys.argv) > 1 else ":memory:"
    # Without the local model, memories are found by their words alone.
    with Memory(path, embedder="minilm" if find_spec("mnemic_minilm") else None) as memory:
        for reply in chat(memory, "alice", sys.stdin):
            print(reply, flush=True)


if __name__ == "__main__":
    main()
