"""Labelled questions over stored memories, read from two forms of JSON lines."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

OWN_DATA = Path(__file__).parent / "data"
OWN_FILES = ("memories.jsonl", "questions.jsonl")
LANGUAGES = ("en", "de", "es", "ja", "zh")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One thing to be stored, under the id by which the questions name it."""

    id: str
    content: str
    created_at: datetime | None = None
    session_id: str | None = None
    position: int | None = None
    speaker: str | None = None
    role: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with the grade of every memory that is relevant to its answer."""

    id: str
    text: str
    kind: str
    grades: dict[str, int]
    distractors: frozenset[str] = frozenset()
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The memories of one agent and the questions about them."""

    name: str
    memories: list[Memory]
    questions: list[Question]


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Collections measured together.

    `relevant_from` is the lowest grade that counts as relevant in recall and precision.
    """

    name: str
    sha256: str
    relevant_from: int
    collections: list[Collection]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON object a line."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def hash_of(*paths: Path) -> str:
    """SHA-256 of the files' bytes, one after the other, in hexadecimal."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def load_own(directory: Path = OWN_DATA) -> Dataset:
    """Read the project's own set: graded questions over the memories of one agent."""
    memories_path, questions_path = (directory / name for name in OWN_FILES)
    collection = Collection(
        name="own",
        memories=[own_memory(line) for line in read_lines(memories_path)],
        questions=[own_question(line) for line in read_lines(questions_path)],
    )
    return Dataset(
        name="own",
        sha256=hash_of(memories_path, questions_path),
        relevant_from=2,
        collections=[collection],
    )


def load_languages(directory: Path = OWN_DATA / "languages") -> Dataset:
    """Read the parallel part of the own set: the same memories in five languages.

    Each language is a collection, and so a store, of its own. The last collection is one store with
    all of them and the rest of the own set, and the kind of its questions is their language.
    """
    own = {code: load_own(directory / code).collections[0] for code in LANGUAGES}
    alone = [replace(collection, name=code) for code, collection in own.items()]
    return Dataset(
        name="languages",
        sha256=hash_of(*(directory / code / name for code in LANGUAGES for name in OWN_FILES)),
        relevant_from=2,
        collections=[*alone, mixed_of(own)],
    )


def mixed_of(collections: dict[str, Collection]) -> Collection:
    """One collection of several and the own set, with ids that name the collection."""
    memories, questions = list(load_own().collections[0].memories), []
    for code, one in collections.items():
        memories += [replace(memory, id=f"{code}:{memory.id}") for memory in one.memories]
        questions += [question_of(code, question) for question in one.questions]
    return Collection(name="mixed", memories=memories, questions=questions)


def question_of(code: str, question: Question) -> Question:
    return replace(
        question,
        id=f"{code}:{question.id}",
        kind=f"mixed, {code}",
        grades={f"{code}:{name}": grade for name, grade in question.grades.items()},
        distractors=frozenset(f"{code}:{name}" for name in question.distractors),
    )


def own_memory(line: dict[str, Any]) -> Memory:
    return Memory(
        id=line["id"],
        content=line["content"],
        created_at=datetime.fromisoformat(line["created_at"]),
        type=line["type"],
        tags=tuple(line["tags"]),
    )


def own_question(line: dict[str, Any]) -> Question:
    return Question(
        id=line["id"],
        text=line["text"],
        kind=line["kind"],
        grades=line["relevant"],
        distractors=frozenset(line["distractors"]),
    )


def load_conversations(directory: Path) -> Dataset:
    """Read `turns.jsonl` and `questions.jsonl`: conversations with evidence turns.

    A conversation is one agent's memory, and each of its evidence turns has grade 1. With a
    `meta.json` whose `label` is false, the content of a turn does not begin with its speaker.
    """
    turns_path, questions_path = directory / "turns.jsonl", directory / "questions.jsonl"
    meta_path = directory / "meta.json"
    meta = json.loads(meta_path.read_text(encoding="utf-8")) if meta_path.exists() else {}
    labelled = meta.get("label", True)
    memories: dict[str, list[Memory]] = {}
    questions: dict[str, list[Question]] = {}
    for line in sorted(read_lines(turns_path), key=lambda turn: turn["pos"]):
        memories.setdefault(line["conv"], []).append(turn_memory(line, labelled=labelled))
    for line in read_lines(questions_path):
        questions.setdefault(line["conv"], []).append(turn_question(line))
    return Dataset(
        name=directory.resolve().name,
        sha256=hash_of(turns_path, questions_path, *([meta_path] if meta else [])),
        relevant_from=1,
        collections=[
            Collection(name=name, memories=memories[name], questions=questions[name])
            for name in sorted(questions)
        ],
    )


def turn_memory(line: dict[str, Any], *, labelled: bool) -> Memory:
    photo = f" [shares a photo: {line['caption']}]" if line.get("caption") else ""
    label = f"{line['speaker']}: " if labelled and line["speaker"] else ""
    time, session = line["time"], line["session"]
    return Memory(
        id=line["id"],
        content=f"{label}{line['text']}{photo}",
        created_at=datetime.fromisoformat(time).replace(tzinfo=UTC) if time else None,
        session_id=None if session is None else str(session),
        position=None if session is None else line["pos"],
        speaker=line["speaker"],
        role=line.get("role"),
    )


def turn_question(line: dict[str, Any]) -> Question:
    return Question(
        id=line["id"],
        text=line["text"],
        kind=line["category"],
        grades=dict.fromkeys(line["evidence"], 1),
        answer=str(line.get("answer") or ""),
    )
