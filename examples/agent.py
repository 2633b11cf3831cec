"""A small agent loop with a long-term memory: `python examples/agent.py`, offline.

The "model" is a stand-in that counts what its prompt remembers, so that the flow is visible: recall
the memories that matter now, build the prompt within a budget, answer, store the new statement.
"""

from mnemic import Memory, MemoryEntry
from mnemic.compat import ContextItemType, ContextWindow

TURNS = (
    "I moved to Oslo last week, the flat is near the harbour.",
    "I can't eat peanuts, they make me ill.",
    "What should I cook for friends tonight?",
    "Where do I live?",
    "Actually I moved on to Bergen.",
    "Where do I live?",
)


def answer(prompt: str) -> str:
    """Stand in for a language model: count the remembered lines of the prompt."""
    _system, *known, _message = [line for line in prompt.splitlines() if line.strip("-")]
    return f"(a model would answer from {len(known)} remembered lines)"


def main() -> None:
    """Run one conversation."""
    with Memory(":memory:") as memory:
        alice = memory.scoped(user_id="alice", session_id="monday")
        for position, said in enumerate(TURNS):
            window = ContextWindow(2000)
            window.add("You help Alice. Use what you remember.", ContextItemType.SYSTEM_PROMPT)
            window.add(said, ContextItemType.USER_MESSAGE)
            remembered = alice.retrieve_to_context(said, window, limit=5)
            reply = answer(window.build().text)
            print(
                f"Alice: {said}\n  {remembered} memories, {window.current_tokens} tokens: {reply}"
            )
            for old in alice.contradictions(said):
                print(f"  contradicts: {old.content} ({old.match_reason})")
            alice.add(MemoryEntry(said, role="user", position=position))
        print(
            "\nFor another prompt:\n"
            + memory.context("Which foods make Alice ill?", user_id="alice", max_tokens=60)
        )


if __name__ == "__main__":
    main()
