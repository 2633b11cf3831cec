"""Texts and names of any kind fail no turn, and are stored with the rest of it."""

import json

import hostile
import pytest


def contents(session):
    return [entry.content for entry in session.memories.list(limit=1000)]


@hostile.texts
def test_a_text(session, text):
    now = session("now")
    now.sync_turn(text, "tea and cake")
    assert len(contents(now)) == (2 if text.strip("\0 \n\t\u2003") else 1)
    assert isinstance(session("next").prefetch(text), str)


@hostile.texts
@pytest.mark.parametrize("tool", ["mnemic_search", "mnemic_remember", "mnemic_forget"])
def test_a_tool_call(session, tool, text):
    now = session("now")
    assert isinstance(json.loads(now.handle_tool_call(tool, {"any": text})), dict)


@pytest.mark.parametrize("args", [{}, {"a": 1}, {"a": None}, {"a": "tea", "b": "tea"}, None])
def test_arguments_of_a_tool_call(session, args):
    answer = session("now").handle_tool_call("mnemic_search", args)
    assert list(json.loads(answer)) == ["error"]


@hostile.names
def test_a_name(session, name):
    now = session(name, platform=name, user_id=name)
    now.sync_turn("I like tea", "Good", session_id=name)
    now.on_session_switch(name)
    now.sync_turn("I like cake", "Good")
    assert len(contents(now)) == 4
    assert isinstance(now.prefetch("tea", session_id=name), str)
    assert "tea" in session("another", platform=name, user_id=name).prefetch("tea")
