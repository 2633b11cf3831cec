"""Two users, reopening, and a writer that is killed."""

import json

import killed
from hermes_mnemic import provider

PEOPLE = [
    {},
    {"platform": ""},
    {"platform": "telegram"},
    {"platform": "telegram", "user_id": "1"},
    {"platform": "telegram", "user_id": "1/2"},
    {"platform": "telegram/1", "user_id": "2"},
    {"platform": "telegram", "user_id": "1%2F2"},
    {"platform": "discord", "user_id": "1"},
    {"platform": "", "user_id": "local"},
    {"platform": "", "user_id": "telegram"},
    {"platform": "cli", "user_id": "*"},
    {"platform": "slack", "user_id": "\u00e4"},
    {"platform": "slack", "user_id": "a\u0308"},
    {"platform": "slack", "user_id": "\ud800"},
    {"platform": "slack", "user_id": "a\0\n"},
]
ONE_PERSON = 2  # the first are of the command line, and one
WRITER = """
import sys
from hermes_mnemic import MnemicMemoryProvider

made = MnemicMemoryProvider()
made.initialize("w", hermes_home=sys.argv[1], platform="cli")
for at in range(10_000):
    made.sync_turn(f"Note {at} about the harbour", f"Answer {at}")
    print(at, flush=True)
"""


def contents(session):
    return sorted(entry.content for entry in session.memories.list(limit=1000))


def test_every_user_of_every_platform_has_memories_of_their_own_whatever_their_names(session):
    for at, person in enumerate(PEOPLE):
        session(f"s{at}", **person).sync_turn(f"Secret number {at}", "Safe")
    for at, person in enumerate(PEOPLE[ONE_PERSON:], ONE_PERSON):
        assert contents(session("t", **person)) == ["Safe", f"Secret number {at}"]
        lines = session("t", **person).prefetch("secret").splitlines()
        assert [line for line in lines if "number" in line and f"number {at}" not in line] == []
    assert len(contents(session("t"))) == 2 * ONE_PERSON
    session("t", **PEOPLE[5]).memories.delete_all(permanent=True)
    left = [len(contents(session("t", **person))) for person in PEOPLE]
    assert [at for at, number in enumerate(left) if not number] == [5]


def test_what_others_say_changes_no_answer_and_their_ids_are_not_there(session):
    mine = session("a", platform="telegram", user_id="alice")
    for at in range(30):
        mine.sync_turn(f"I went to town {at} with Ana", "Nice")
    mine.on_session_switch("b")
    alone = mine.prefetch("Where did I go with Ana?")
    found = mine.handle_tool_call("mnemic_search", {"query": "Ana"})
    theirs = session("a", platform="telegram", user_id="bob")
    for at in range(60):
        theirs.sync_turn(f"I went to town {at} with Ana, too", "Good")
    for entry in mine.memories.list(limit=5):
        answer = json.loads(theirs.handle_tool_call("mnemic_forget", {"id": str(entry.id)}))
        assert list(answer) == ["error"]
    assert mine.prefetch("Where did I go with Ana?") == alone
    assert mine.handle_tool_call("mnemic_search", {"query": "Ana"}) == found


def test_a_deletion_stays_after_reopening(session):
    now = session("a")
    now.sync_turn("My safe opens with tangerine", "Good")
    (secret,) = now.memories.list(filters={"role": "user"})
    now.handle_tool_call("mnemic_forget", {"id": str(secret.id)})
    now.on_session_end([])
    now.shutdown()
    provider._opened.cache_clear()
    again = session("b")
    assert contents(again) == ["Good"]
    assert "tangerine" not in again.prefetch("tangerine safe")


def test_what_was_acknowledged_is_there_after_a_writer_was_killed(home, session):
    for turn in range(1, 4):
        last = int(killed.lines_of(WRITER, home, least=30)[-1])
        mine = session("r")
        notes = [text for text in contents(mine) if text.startswith("Note")]
        for at in range(last + 1):
            assert notes.count(f"Note {at} about the harbour") == turn
        assert len(contents(mine)) == 2 * len(notes)
        mine.memories.delete_many(filters={"content": {"contains": "Nothing"}})
        provider._opened.cache_clear()
