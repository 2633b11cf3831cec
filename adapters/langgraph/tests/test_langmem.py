"""langmem's tools and its memory manager run over the store as over the one in memory."""

import asyncio
import json

import pytest
from conftest import INDEX
from langgraph.store.memory import InMemoryStore
from langgraph.store.mnemic import AsyncMnemicStore, MnemicStore

langmem = pytest.importorskip("langmem")

from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402

CONFIG = {"configurable": {"langgraph_user_id": "ann"}}
MANAGER_INDEX = INDEX | {"fields": ["content"]}


class Scripted(BaseChatModel):
    """A chat model that calls the tool for memories once, whatever it is told."""

    content: str

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, *_, **__):
        return self

    def _generate(self, messages, *_, **__):
        is_answered = any(message.type == "tool" for message in messages)
        call = {"name": "Memory", "args": {"content": self.content}, "id": "1"}
        message = AIMessage("", tool_calls=[] if is_answered else [call])
        return ChatResult(generations=[ChatGeneration(message=message)])


def scripted_tools(store):
    """Return what langmem's tools return, without ids and times."""
    place = ("memories", "{langgraph_user_id}")
    manage = langmem.create_manage_memory_tool(namespace=place, store=store)
    search = langmem.create_search_memory_tool(namespace=place, store=store)

    def found(query):
        text = search.invoke({"query": query, "limit": 5}, config=CONFIG)
        return [(item["namespace"], item["value"]) for item in json.loads(text)]

    for text in ("prefers tea", "plays the oboe", "allergic to peanuts"):
        manage.invoke({"content": text, "action": "create"}, config=CONFIG)
    steps = [found("peanuts"), found("oboe")]
    (tea,) = [item for item in store.search(("memories",)) if "tea" in str(item.value)]
    update = {"content": "prefers coffee", "id": tea.key, "action": "update"}
    manage.invoke(update, config=CONFIG)
    steps.append(found("coffee"))
    manage.invoke({"id": tea.key, "action": "delete"}, config=CONFIG)
    return [*steps, found("coffee"), store.list_namespaces()]


def test_the_tools_answer_as_over_the_store_in_memory(tmp_path):
    expected = scripted_tools(InMemoryStore(index=MANAGER_INDEX))
    with MnemicStore.from_conn_string(str(tmp_path / "a.db"), index=MANAGER_INDEX) as store:
        assert scripted_tools(store) == expected
    assert [len(step) for step in expected] == [3, 3, 3, 2, 1]


def managed(store, text):
    manager = langmem.create_memory_store_manager(
        Scripted(content=text),
        namespace=("memories", "{langgraph_user_id}"),
        store=store,
        query_limit=3,
    )
    said = {"messages": [{"role": "user", "content": f"{text} " * 2_000}]}
    return manager, said


def test_the_manager_stores_what_a_model_finds(tmp_path):
    with MnemicStore.from_conn_string(str(tmp_path / "a.db"), index=MANAGER_INDEX) as store:
        for text in ("likes the sea", "lives in Oslo"):
            manager, said = managed(store, text)
            manager.invoke(said, config=CONFIG)
        found = store.search(("memories", "ann"), query="sea")
    assert sorted(item.value["content"]["content"] for item in found) == [
        "likes the sea",
        "lives in Oslo",
    ]


def test_the_awaited_manager_stores_what_a_model_finds(tmp_path):
    async def run():
        path = str(tmp_path / "a.db")
        async with AsyncMnemicStore.from_conn_string(path, index=MANAGER_INDEX) as store:
            manager, said = managed(store, "likes the sea")
            await manager.ainvoke(said, config=CONFIG)
            return await store.asearch(("memories", "ann"))

    (item,) = asyncio.run(run())
    assert item.value["content"] == {"content": "likes the sea"}
