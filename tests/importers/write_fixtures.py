"""Write the fixtures of other libraries: `python tests/importers/write_fixtures.py KIND`.

It runs in an environment that has the library, as each function names it; the others need none.
No model is used: vectors are made of the letters of a text.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
WIDTH = 8


def vector(text):
    return [1 + sum(map(ord, text[at::WIDTH])) % 97 / 97 for at in range(WIDTH)]


class Embedder:
    def embed(self, text, memory_action=None):
        del memory_action
        return vector(text)

    def embed_batch(self, texts, memory_action=None):
        del memory_action
        return [vector(text) for text in texts]


class Model:
    """Says what a language model would extract."""

    def generate_response(self, **_):
        said = [{"text": "Ana moved to Oslo in May", "attributed_to": "user"}]
        return json.dumps({"memory": said})


def mem0(folder):
    """mem0ai 2.2.1 with qdrant-client, its default store, in a folder that lasts."""
    os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none"}
    os.environ["MEM0_DIR"] = tempfile.mkdtemp()
    from mem0 import Memory  # noqa: PLC0415 - see the module

    store = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": WIDTH}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model, memory.llm = Embedder(), Model()
    memory.add([{"role": "user", "content": "I moved to Oslo in May"}], user_id="ana")
    memory.add("Prefers tea", user_id="ana", infer=False, metadata={"topic": "drinks", "cups": 3})
    said = [
        {"role": "user", "name": "Ben", "content": "I am allergic to peanuts"},
        {"role": "assistant", "content": "Noted: no peanuts"},
    ]
    memory.add(said, user_id="ben", agent_id="cook", run_id="dinner", infer=False)
    changed = memory.add("Lives in Bergen", user_id="ben", infer=False)["results"][0]["id"]
    memory.update(changed, "Lives in Tromsø")
    gone = memory.add("Forget this", user_id="ben", infer=False)["results"][0]["id"]
    memory.delete(gone)
    memory.add("Speaks to nobody", agent_id="cook", infer=False)
    memory.close()
    (folder / "qdrant" / ".lock").unlink(missing_ok=True)


def langgraph(folder):
    """langgraph-checkpoint-sqlite 3.1.2."""
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415 - see the module

    index = {"dims": WIDTH, "embed": lambda texts: list(map(vector, texts)), "fields": ["text"]}
    with SqliteStore.from_conn_string(str(folder / "store.db"), index=index) as store:
        store.setup()
        store.put(("memories", "ana"), "home", {"text": "Ana moved to Oslo in May", "sure": 0.9})
        store.put(("memories", "ana"), "tea", {"text": "Prefers tea", "tags": ["drinks"]})
        store.put(("memories", "ben"), "home", {"text": "Ben lives in Tromsø"}, index=False)
        # As langmem writes them, and a value without a text of its own.
        said = {"kind": "Memory", "content": {"content": "Ben is allergic to peanuts"}}
        store.put(("memories", "ben"), "3f7a5f52-9d0e-4f0e-8c59-0a6ec1a7b611", said)
        store.put(("settings",), "ui", {"theme": "dark", "sizes": [1, 2]})
        store.put(("memories", "ben"), "guest", {"text": "A guest stays"}, ttl=5_000_000)
        store.put(("memories", "ben"), "gone", {"text": "Forget this"})
        store.delete(("memories", "ben"), "gone")


def chroma(folder):
    """chromadb 1.5.9."""
    import chromadb  # noqa: PLC0415 - see the module
    from chromadb.config import Settings  # noqa: PLC0415 - see the module

    settings = Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder), settings=settings)
    notes = client.create_collection("notes", embedding_function=None)
    texts = ["Ana moved to Oslo in May", "Prefers tea", "Ben is allergic to peanuts"]
    notes.add(
        ids=["n1", "n2", "n3"],
        documents=texts,
        embeddings=list(map(vector, texts)),
        metadatas=[
            {"user_id": "ana", "created_at": "2026-05-03T08:00:00Z", "sure": 0.5},
            {"user_id": "ana", "cups": 3, "is_hot": True},
            {"user_id": "ben"},
        ],
    )
    notes.update(ids=["n2"], documents=["Prefers green tea"], embeddings=[vector("green")])
    notes.delete(ids=["n3"])
    pictures = client.create_collection("pictures", embedding_function=None)
    pictures.add(ids=["p1"], embeddings=[vector("p")], metadatas=[{"title": "A fjord"}])
    pictures.add(ids=["p2"], embeddings=[vector("q")], documents=["A cabin by the fjord"])


def basic_memory(folder):
    """basic-memory 0.24.1, which needs Python 3.12; without its search by meaning."""
    home = tempfile.mkdtemp()
    os.environ |= {"HOME": home, "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false"}
    command = Path(sys.executable).with_name("basic-memory")

    def run(*arguments):
        subprocess.run([command, *arguments], check=True, capture_output=True)

    run("project", "add", "kitchen", str(folder))
    for title, where, tags, text in NOTES:
        given = ["--title", title, "--folder", where, "--content", text]
        marked = [part for tag in tags for part in ("--tags", tag)]
        run("tool", "write-note", "--local", "--project", "kitchen", *given, *marked)
    shutil.rmtree(home)


NOTES = [
    (
        "Coffee",
        "drinks",
        ["coffee", "morning"],
        """# Coffee

Ana drinks it before eight.

## Observations
- [method] Pour over gives a clean flavour #brewing (tried in May)
- [preference] Ana takes no sugar

## Relations
- relates_to [[Tea]]
- grown_in [[Ethiopia]]
""",
    ),
    ("Tea", "drinks", [], "- [preference] Ben prefers green tea\n- [ ] buy a kettle\n"),
    (
        "Ferry",
        "",
        ["trips"],
        "The ferry leaves at noon, see [the table](https://example.invalid).\n",
    ),
]

KINDS = {"mem0": mem0, "langgraph": langgraph, "chroma": chroma, "basic-memory": basic_memory}

if __name__ == "__main__":
    for kind in sys.argv[1:]:
        target = FIXTURES / kind
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        KINDS[kind](target)
        for each in target.glob("*-*-*-*-*"):  # Chroma's vectors, which nobody reads
            shutil.rmtree(each)
        shutil.rmtree(os.environ.get("MEM0_DIR", "/nonexistent"), ignore_errors=True)
