"""The plugin in Hermes's own loader, memory manager and backup."""

import json

import pytest
from agent.memory_manager import MemoryManager
from hermes_cli import backup
from plugins.memory import discover_memory_providers, load_memory_provider

PLUGIN = "from hermes_mnemic import MnemicMemoryProvider\n"


@pytest.fixture
def manager(home):
    folder = home / "plugins" / "mnemic"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(PLUGIN, "utf-8")
    manager = MemoryManager()
    manager.add_provider(load_memory_provider("mnemic"))
    manager.initialize_all(session_id="one", hermes_home=str(home), platform="cli")
    yield manager
    manager.shutdown_all()


def test_the_loader_finds_the_plugin_and_that_it_is_available(manager):
    assert "mnemic" in [provider.name for provider in manager.providers]
    assert ("mnemic", "", True) in discover_memory_providers()


def test_a_turn_goes_through_the_manager(manager):
    manager.sync_all("I'm allergic to peanuts", "Noted.", session_id="one")
    manager.queue_prefetch_all("I'm allergic to peanuts", session_id="one")
    if hasattr(manager, "flush_pending"):  # others store before they return
        assert manager.flush_pending(timeout=60)
    manager.on_session_end([])
    manager.on_session_switch("two", parent_session_id="one", reset=True)
    assert "peanuts" in manager.prefetch_all("Which foods must she avoid?")
    assert "mnemic_search" in manager.build_system_prompt()


def test_the_tools_go_through_the_manager_and_hide_none_of_hermess_own(manager):
    names = {schema["name"] for schema in manager.get_all_tool_schemas()}
    assert names == {"mnemic_search", "mnemic_remember", "mnemic_forget"}
    stored = manager.handle_tool_call("mnemic_remember", {"content": "Likes tea"}, task_id="x")
    assert json.loads(manager.handle_tool_call("mnemic_search", {"query": "tea"})) == {
        "memories": [{"id": json.loads(stored)["id"], "text": "Likes tea"}]
    }


def test_the_backup_takes_along_a_file_outside_of_the_home(manager, home, monkeypatch):
    collect = getattr(backup, "_collect_memory_provider_external_paths", None)
    if collect is None:
        pytest.skip("this version of Hermes asks no provider")
    monkeypatch.setenv("HOME", str(home.parent))
    outside = home.parent / f"{home.name}-own.db"
    outside.touch()
    (home / "config.yaml").write_text("memory:\n  provider: mnemic\n", "utf-8")
    (provider,) = manager.providers
    provider.save_config({"path": str(outside)}, str(home))
    assert collect() == [outside]
