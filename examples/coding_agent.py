"""A coding agent with memory files and a HyDE engine: `python examples/coding_agent.py`, offline.

The memories are Markdown files of a repository and of its user. A local server stands in for the
services of an embedder and a language model. For each message of the user the engine finds the
memories that matter and puts them after the system prompt; the tool calls of the same turn use them
again without a request. At the end the server hangs, and the agent answers all the same.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from mnemic import AsyncMemory, HttpEmbedder
from mnemic.hyde import AsyncHydeEngine, HydeConfig
from mnemic.llm import HttpLanguageModel
from mnemic_files import MemoryFile, MemoryFiles, new_memory_id

SYSTEM_PROMPT = "You are a coding agent."
MESSAGES = (
    "Please add a test for the parser. How do we run the tests?",
    "Which port does the local database listen on?",
)
SUB_TURNS = 3

_opener = build_opener(ProxyHandler({}))


@contextmanager
def model_server(embedder: str) -> Generator[str, None, None]:
    """Run the local server of models, and return its base URL."""
    program = Path(__file__).with_name("model_server.py")
    command = [sys.executable, str(program), "--port", "0", "--embedder", embedder]
    with subprocess.Popen(  # noqa: S603 - the program beside this one
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def call(url: str, method: str, path: str, body: object = None) -> Any:
    """Call the part of the server that counts requests and makes faults."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url.removesuffix("/v1") + path, data, method=method)  # noqa: S310 - on this machine
    with _opener.open(request, timeout=10) as response:
        return json.load(response)


def requests(url: str) -> int:
    """Return the number of requests to models so far."""
    report = call(url, "GET", "/requests")
    return int(report["embeddings"]) + int(report["chat"])


def written_files(directory: Path) -> MemoryFiles:
    """Write the memory files that earlier sessions would have left."""
    files = MemoryFiles(directory / "repo", directory / "user")
    port = file("user", "user-facts", "The local database listens on port 5432.")
    files.write(port)
    files.write(file("repo", "project-conventions", "Run the tests with `make test`, not pytest."))
    files.write(file("repo", "architectural-decisions", "The parser is written by hand."))
    files.write(file("user", "coding-preferences", "Tests are named as sentences."))
    files.write(
        file(
            *("user", "corrections", "The local database listens on port 5433 since the upgrade."),
            supersedes=port.id,
            version=2,
        )
    )
    return files


def file(scope: Any, category: str, content: str, **further: Any) -> MemoryFile:
    """Make a memory file of an earlier session."""
    return MemoryFile(
        id=new_memory_id(),
        created_at=datetime(2026, 11, 2, 9, 30, tzinfo=UTC),
        scope=scope,
        category=category,
        session_id="earlier",
        trigger="cadence",
        content=content,
        **further,
    )


async def answer(
    engine: AsyncHydeEngine, message: str, history: list[dict[str, str]], url: str
) -> None:
    """Handle a message of the user: retrieve once, then work in sub-turns, then answer."""
    begun, before = time.perf_counter(), requests(url)
    async with engine.turn(message, history) as turn:
        seconds, after = time.perf_counter() - begun, requests(url)
        prompt = turn.system_prompt(SYSTEM_PROMPT)
        for _ in range(SUB_TURNS):  # a real agent calls its model and a tool here
            await turn.retrieve()
        history += [{"role": "user", "content": message}, {"role": "assistant", "content": "…"}]
        print(
            f"user: {message}\n"
            f"  {len(turn.memories)} memories by {after - before} requests "
            f"within the deadline: {seconds < engine.config.timeout + 0.5}\n"
            f"  {SUB_TURNS} sub-turns by {requests(url) - after} requests\n"
        )
        print(*(f"  | {line}".rstrip() for line in prompt.splitlines()), "", sep="\n")


async def run(url: str, directory: Path) -> None:
    """Run one session."""
    files = written_files(directory)
    config = HydeConfig(retrieval_top_k=3, injection_token_budget=400)
    async with (
        HttpEmbedder("local", base_url=url, api_key="", max_retries=0) as embedder,
        HttpLanguageModel("local", base_url=url, api_key="", max_retries=0) as llm,
        AsyncMemory(directory / "memory.db", embedder=embedder) as memory,
    ):
        await files.synchronise_async(memory)
        async with AsyncHydeEngine(memory, embedder, llm, config) as engine:
            await engine.ready(10)
            history: list[dict[str, str]] = []
            for message in MESSAGES:
                await answer(engine, message, history, url)
            print("The server hangs.")
            call(url, "POST", "/faults", {"hang": True, "times": 0})
            await answer(engine, "And which one does the cache use?", history, url)
            call(url, "DELETE", "/faults")


def main() -> None:
    """Start the server, or take one that runs, and run one session."""
    parser = argparse.ArgumentParser(description="A coding agent with a long-term memory.")
    parser.add_argument("--embedder", choices=("minilm", "hash"), default="minilm")
    chosen = parser.parse_args()
    with model_server(chosen.embedder) as url, tempfile.TemporaryDirectory() as directory:
        asyncio.run(run(url, Path(directory)))


if __name__ == "__main__":
    main()
