"""Sources for the tests of readers, and what they have in common."""

SOURCES = [
    ("mem0", "mem0/history.db"),
    ("mem0", "mem0/qdrant/collection/mem0/storage.sqlite"),
    ("langgraph", "langgraph/store.db"),
    ("chroma", "chroma/chroma.sqlite3"),
]


def one(stored):
    (entry,) = stored.values()
    return entry


def node(name, parent, role, text, time=None, **content):
    content = {"content_type": "text", "parts": [text]} | content
    author = {"role": role, "name": None, "metadata": {}}
    message = {"id": name, "author": author, "create_time": time, "content": content, "weight": 1.0}
    return {"id": name, "message": message, "parent": parent, "children": []}


CHATGPT = [
    {
        "title": "Moving",
        "create_time": 1_778_000_000.5,
        "update_time": 1_778_000_100.5,
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
            "s": node("s", "root", "system", ""),
            "q": node("q", "s", "user", "I move to Oslo in May", 1_778_000_001.25),
            "old": node("old", "q", "assistant", "How nice", 1_778_000_002.0),
            "code": node("code", "q", "assistant", "1 + 1", content_type="code"),
            "tool": node("tool", "code", "tool", "2"),
            "a": node("a", "tool", "assistant", "Oslo is cold", 1_778_000_003.0),
            "p": node(
                "p",
                "a",
                "user",
                "",
                content_type="multimodal_text",
                parts=[
                    {"content_type": "image_asset_pointer"},
                    "My new flat",
                    {"content_type": "audio_transcription", "text": "It is small"},
                ],
            ),
        },
        "current_node": "p",
        "conversation_id": "c-1",
    },
    {"title": None, "mapping": {}, "current_node": None, "id": "c-2"},
]

CLAUDE = [
    {
        "uuid": "c-1",
        "name": "Dinner",
        "created_at": "2026-05-03T08:00:00.000000Z",
        "account": {"uuid": "someone"},
        "chat_messages": [
            {
                "uuid": "m-1",
                "text": "I am allergic to peanuts",
                "content": [{"type": "text", "text": "I am allergic to peanuts", "citations": []}],
                "sender": "human",
                "created_at": "2026-05-03T08:00:01.000000Z",
                "attachments": [
                    {"file_name": "menu.txt", "extracted_content": "1. Peanut soup\n2. Bread\n"},
                    {"file_name": "scan.pdf", "extracted_content": ""},
                ],
                "files": [{"file_name": "table.png"}],
            },
            {
                "uuid": "m-2",
                "text": "",
                "content": [
                    {"type": "thinking", "thinking": "…"},
                    {"type": "text", "text": "Noted."},
                    {"type": "tool_use", "name": "search", "input": {}},
                    {"type": "text", "text": "No peanuts."},
                ],
                "sender": "assistant",
                "created_at": "2026-05-03T08:00:02.000000Z",
            },
            {"uuid": "m-3", "text": "From an older export", "sender": "human"},
        ],
    }
]
