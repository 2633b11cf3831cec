"""Claude's export, in the form in which it is published."""

from mnemic.importers import claude
from tests.importers.sources import CLAUDE


def test_claudes_messages_are_read_with_roles_times_and_order(bring, written):
    report, stored = bring("claude", written(CLAUDE))
    asked = stored["I am allergic to peanuts"]
    answered = stored["Noted.\n\nNo peanuts."]
    assert (asked.role, answered.role, asked.position, answered.position) == (
        *("user", "assistant"),
        *(0, 1),
    )
    assert (asked.session_id, asked.metadata) == ("c-1", {"title": "Dinner"})
    older = stored["From an older export"]
    assert f"{older.created_at:%FT%T}" == "2026-05-03T08:00:00"  # the conversation's
    assert report.lost == {claude.FILES: 2, claude.NO_TEXTS: 2}


def test_the_text_of_an_attachment_is_a_memory_beside_its_message(bring, written):
    _, stored = bring("claude", written(CLAUDE))
    attached = stored["1. Peanut soup\n2. Bread"]
    assert attached.metadata == {"title": "Dinner", "file": "menu.txt"}
    assert (attached.role, attached.session_id, attached.position) == ("user", "c-1", 0)
    assert attached.message_id == "m-1/attachment-1"
