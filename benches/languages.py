"""What holds in which language: `python -m benches.languages`; meaning needs both local models.

Five languages have the same sixty memories and fifty questions (`benches/quality/data/languages`):
recall@1 by words alone, by meaning alone with each model, and by both; and English questions over
the memories of another language. For twelve, one sentence each says whether endings, dates and
contradictions are read.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from benches.quality.datasets import load_languages
from benches.quality.methods.front_door import FrontDoor
from benches.quality.metrics import recall_at
from mnemic import Memory
from mnemic._core import date_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benches.quality.datasets import Collection, Question

DEPTH = 10
WAYS = {
    "words": {"memory_options": {"embedder": None}, "search_options": {"search_type": "keyword"}},
    "meaning, minilm": {
        "memory_options": {"embedder": "minilm"},
        "search_options": {"search_type": "semantic"},
    },
    "meaning, multilingual": {
        "memory_options": {"embedder": "multilingual"},
        "search_options": {"search_type": "semantic"},
    },
    "both, minilm": {"memory_options": {"embedder": "minilm"}, "search_options": {}},
    "both, multilingual": {"memory_options": {"embedder": "multilingual"}, "search_options": {}},
}
SENTENCES = {
    "en": ("We hiked old trails.", "hiking trail", "What did I eat yesterday?", "I live in {}."),
    "de": (
        "Wir gingen alte Wege.",
        "alter Weg",
        "Was habe ich gestern gegessen?",
        "Ich wohne in {}.",
    ),
    "es": ("Vimos senderos viejos.", "sendero viejo", "¿Qué comí ayer?", "Vivo en {}."),
    "fr": ("Nous marchions longtemps.", "marcher", "Qu'ai-je mangé hier ?", "J'habite à {}."),
    "it": ("Camminavamo a lungo.", "camminare", "Che cosa ho mangiato ieri?", "Abito a {}."),
    "nl": ("We wandelden lang.", "wandelen", "Wat heb ik gisteren gegeten?", "Ik woon in {}."),
    "pt": ("Caminhamos muito.", "caminhar", "O que comi ontem?", "Moro em {}."),
    "ru": ("Мы шли старыми тропами.", "старая тропа", "Что я ел вчера?", "Я живу в {}."),
    "tr": ("Patikalarda yürüdük.", "patika", "Dün ne yedim?", "Evim {} kentinde."),
    "zh": ("我们走过古老的小路。", "小路", "我昨天吃了什么?", "我住在{}。"),
    "ja": ("古い道を歩きました。", "古い道", "昨日何を食べた?", "{}に住んでいます。"),
    "ko": ("우리는 길을 걸었다.", "길", "어제 뭐 먹었지?", "저는 {}에 살아요."),
}
"""A memory, other forms of its words, a question of yesterday, and a home, in two towns of which
two memories contradict each other."""


def recall(way: dict[str, Any], memories: Collection, questions: Iterable[Question]) -> float:
    """Return the share of the answers that are first."""
    door = FrontDoor("languages", **way)
    door.index(memories.memories)
    found = [
        recall_at(door.search(question.text, DEPTH), relevant(question), 1)
        for question in questions
    ]
    door.close()
    return sum(found) / len(found)


def relevant(question: Question) -> set[str]:
    """Return the one best answer."""
    return {max(question.grades, key=question.grades.__getitem__)}


def meaning(models: list[str]) -> None:
    """Print what is found of the parallel memories."""
    sets = {one.name: one for one in load_languages().collections if one.name != "mixed"}
    ways = {
        name: way for name, way in WAYS.items() if name.rpartition(" ")[2] in (*models, "words")
    }
    print(f"| R@1 | {' | '.join(sets)} |\n|---|{'---|' * len(sets)}")
    for name, way in ways.items():
        row = [recall(way, one, one.questions) for one in sets.values()]
        print(f"| {name} | {' | '.join(f'{share:.2f}' for share in row)} |", flush=True)
    for name, way in ways.items():
        if name.startswith("meaning"):
            row = [recall(way, one, sets["en"].questions) for one in sets.values()]
            shares = " | ".join(f"{share:.2f}" for share in row)
            print(f"| {name}, asked in English | {shares} |", flush=True)


def sentences() -> None:
    """Print what is read of the sentences of each language."""
    now = int(time.time() * 1e6)
    print("| | other forms of words | “yesterday” | contradictions |\n|---|---|---|---|")
    for code, (memory, question, day, home) in SENTENCES.items():
        with Memory(":memory:", embedder=None, language=code) as stored:
            stored.add(memory)
            is_found = bool(stored.search(question, search_type="keyword"))
            stored.add(home.format("Oslo"))
            moved = stored.add(home.format("Roma"), check="contradictions")
            contradicts = bool(moved.contradictions)
        row = is_found, bool(date_ranges(day, now)), contradicts
        print(f"| {code} | {' | '.join('yes' if one else 'no' for one in row)} |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.languages", description=__doc__)
    parser.add_argument("--models", nargs="*", default=["minilm", "multilingual"])
    meaning(parser.parse_args().models)
    sentences()


if __name__ == "__main__":
    main()
