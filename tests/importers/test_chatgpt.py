"""ChatGPT's export, in the form in which it is published."""

from mnemic.importers import chatgpt
from tests.importers.sources import CHATGPT, node


def test_chatgpts_last_branch_is_read_with_roles_times_and_order(bring, written):
    report, stored = bring("chatgpt", written(CHATGPT))
    assert set(stored) == {"I move to Oslo in May", "Oslo is cold", "My new flat\n\nIt is small"}
    asked, answered = stored["I move to Oslo in May"], stored["Oslo is cold"]
    assert (asked.role, answered.role) == ("user", "assistant")
    assert (asked.session_id, asked.message_id) == ("c-1", "q")
    assert asked.position < answered.position
    assert asked.created_at.timestamp() == 1_778_000_001.25
    assert (
        stored["My new flat\n\nIt is small"].created_at.timestamp() == 1_778_000_000.5
    )  # the conversation's
    assert asked.type.name == "CONVERSATION"
    assert asked.metadata == {"title": "Moving"}
    assert {kind: count for kind, count in report.lost.items() if count} == {
        chatgpt.BRANCHES: 1,
        chatgpt.OTHER_ROLES: 2,
        chatgpt.NO_TEXTS: 1,
        chatgpt.PICTURES: 1,
    }


def test_a_circle_of_messages_ends(check, written):
    circle = {"a": node("a", "b", "user", "one"), "b": node("b", "a", "assistant", "two")}
    found = check("chatgpt", written([{"mapping": circle, "current_node": "a"}]))
    assert found.found == 2


def test_without_a_current_node_the_branch_of_the_last_message_is_read(check, written):
    mapping = {
        "a": node("a", None, "user", "one", 1.0),
        "b": node("b", "a", "user", "two", 2.0),
        "c": node("c", "a", "user", "three", 3.0),
    }
    report = check("chatgpt", written([{"mapping": mapping}]))
    assert (report.found, report.lost[chatgpt.BRANCHES]) == (2, 1)


def test_files_of_a_message_are_counted_once(check, written):
    files = [{"name": "report.pdf", "id": "file-1"}, {"name": "fjord.png", "id": "file-2"}]
    said = node("a", None, "user", "See these", 1.0)
    said["message"]["metadata"] = {"attachments": files}
    shown = node("b", "a", "user", "", parts=[{"content_type": "image_asset_pointer"}, "A fjord"])
    shown["message"]["metadata"] = {"attachments": files[1:]}
    report = check("chatgpt", written([{"mapping": {"a": said, "b": shown}, "current_node": "b"}]))
    assert (report.found, report.lost) == (2, {chatgpt.PICTURES: 3})
