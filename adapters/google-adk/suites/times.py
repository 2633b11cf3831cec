"""Times beside the kit's own services: 50 sessions of 100 events, then one event more each time.

Medians in milliseconds. mnemic embeds each text, and writes it to disk; the kit's service in
SQLite syncs at checkpoints only, the one in memory never.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from google.adk import memory as kit
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai.types import Content, Part
from google_adk_mnemic import MnemicMemoryService

SESSIONS = 50
EVENTS = 100
ROUNDS = 50
SUBJECTS = ("the garden", "my sister", "a train to Bergen", "the red car", "our kitchen", "a piano")
VERBS = ("asked about", "forgot", "talked of", "remembered", "sold", "painted", "saw", "liked")


def event(at):
    text = f"On day {at} I {VERBS[at % 8]} {SUBJECTS[at % 6]} and told number {at * 7919 % 1000}"
    parts = [Part(text=text)]
    return Event(id=f"e{at}", author="user", content=Content(role="user", parts=parts))


def session(at, events):
    return Session(id=f"s{at}", app_name="app", user_id="alice", events=events)


async def each(call, rounds=ROUNDS):
    times = []
    for turn in range(rounds):
        begun = time.perf_counter()
        await call(turn)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


async def measure(service):
    groups = [list(map(event, range(at * EVENTS, (at + 1) * EVENTS))) for at in range(SESSIONS)]

    async def fill(turn):
        await service.add_session_to_memory(session(turn, groups[turn]))

    async def grow(turn):
        groups[turn].append(event(10_000 + turn))
        await service.add_session_to_memory(session(turn, groups[turn]))

    async def add(turn):
        events = [event(20_000 + turn)]
        await service.add_events_to_memory(app_name="app", user_id="alice", events=events)

    async def search(turn):
        query = f"Who {VERBS[turn % 8]} number {turn * 7919 % 1000}?"
        answer = await service.search_memory(app_name="app", user_id="alice", query=query)
        assert answer.memories

    figures = {"a session of 100": await each(fill, SESSIONS)}
    await search(0)
    figures["that session + 1"] = await each(grow)
    figures["one event"] = await each(add)
    figures["search"] = await each(search)
    return figures


async def main():
    with tempfile.TemporaryDirectory() as folder:
        services = {
            "mnemic": MnemicMemoryService(Path(folder) / "a.db"),
            "SQLite": kit.SqliteMemoryService(Path(folder) / "b.db"),
            "in memory": kit.InMemoryMemoryService(),
        }
        found = {name: await measure(service) for name, service in services.items()}
        await services["mnemic"].memory.close()
    print(f"{SESSIONS * EVENTS:,} events, ms".ljust(20), *(name.rjust(12) for name in found))
    for figure in next(iter(found.values())):
        print(figure.ljust(20), *(f"{of[figure]:12.2f}" for of in found.values()))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
