"""Hypothetical memories by deterministic generators, for `python -m benches.quality.hyde`.

No language model: rules turn the question into a statement, or the sentences of the memories that
the question itself finds stand for hypotheses (pseudo-relevance feedback).
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from benches.quality.datasets import read_lines
from benches.quality.statements import in_first_person, statement
from mnemic._core import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benches.quality.datasets import Collection

MOST = 10
"""Hypotheses of a question: the largest count that the engine takes."""

SHORTEST = 4
"""Sentences of fewer words are greetings and exclamations."""

WINDOW_TURNS = 6
WINDOW_QUESTIONS = 2


class Asked(NamedTuple):
    """A question with all that a generator may read.

    Attributes:
        text: The question.
        before: The two questions before it in the set.
        turns: The last turns of the conversation; none in a set that is no conversation.
        found: The contents of the memories that the question finds, best first, by search type.
        answer: The true answer, which no generator can compute; None where the set has none.
    """

    text: str
    before: tuple[str, ...]
    turns: tuple[str, ...]
    found: dict[str, list[str]]
    answer: str | None


def hypotheses(name: str, asked: Asked) -> list[str]:
    """Return the hypotheses of the generator of that name, without repetitions."""
    texts = [text for part in name.split("+") for text in _of_part(part.strip(), asked)]
    return list(dict.fromkeys(texts))[:MOST]


def _of_part(part: str, asked: Asked) -> list[str]:
    if part in _RULES:
        return _RULES[part](asked)
    kind, count = part.split()
    return feedback(asked.found[kind][: int(count)])


def feedback(memories: Sequence[str]) -> list[str]:
    """Return the memories' sentences: the first of each, then the second of each, and so on."""
    parts = [[memory[begin:end] for begin, end in sentences(memory)] for memory in memories]
    spoken = [[text for text in part if len(text.split()) >= SHORTEST] for part in parts]
    kept = [some or [memory] for some, memory in zip(spoken, memories, strict=True)]
    return [text for row in zip_longest(*kept) for text in row if text is not None]


def _window(lines: Sequence[str], asked: Asked) -> list[str]:
    """Return the window as one text, the question last."""
    return ["\n".join([*lines, f"user: {asked.text}"])] if lines else []


def _true_answer(asked: Asked) -> list[str]:
    """Return the statement with the true answer behind it."""
    if asked.answer is None:
        return []
    return [f"{statement(asked.text).rstrip('.')}: {asked.answer}."]


_RULES = {
    "statement": lambda asked: [statement(asked.text)],
    "invented": lambda asked: [statement(asked.text, invents=True)],
    "first person": lambda asked: [statement(in_first_person(asked.text))],
    "questions before": lambda asked: _window([f"user: {text}" for text in asked.before], asked),
    "turns before": lambda asked: _window(asked.turns, asked),
    "true answer": _true_answer,
    "true answer, first person": lambda asked: _true_answer(
        asked._replace(text=in_first_person(asked.text))
    ),
}


def asked_of(
    collection: Collection, at: int, found: dict[str, list[str]], answers: dict[str, str]
) -> Asked:
    """Return the question at a place of a collection with its surroundings."""
    questions = collection.questions
    turns = collection.memories[-WINDOW_TURNS:]
    return Asked(
        questions[at].text,
        tuple(one.text for one in questions[max(0, at - WINDOW_QUESTIONS) : at]),
        tuple(one.content for one in turns) if turns[0].session_id is not None else (),
        found,
        answers.get(questions[at].id),
    )


def answers_of(directory: Path) -> dict[str, str]:
    """Return the true answers of a set of conversations by the question's id."""
    lines = read_lines(directory / "questions.jsonl")
    return {line["id"]: str(line["answer"]) for line in lines if line.get("answer") is not None}
