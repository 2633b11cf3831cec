"""Results and pages as data frames of pandas."""

import importlib.util
import sys
from datetime import timedelta

import numpy as np
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import MissingExtraError
from tests.support import pandas_stand_in
from tests.support.clock import NOON, Clock
from tests.support.recall import NamedSimilarities

TIMES = ("created_at", "updated_at", "last_accessed_at", "forgotten_at", "expires_at")


@pytest.fixture(params=["pandas", "stand-in"])
def pandas(request, monkeypatch):
    if request.param == "stand-in":
        pandas_stand_in.put(monkeypatch)
    elif importlib.util.find_spec("pandas") is None:
        pytest.skip("pandas is not installed")
    return __import__("pandas")


@pytest.fixture
def memory(pandas):  # noqa: ARG001 - frames are made of it
    with Memory(":memory:", embedder=NamedSimilarities(), clock=Clock()) as opened:
        opened.add(
            MemoryEntry(
                "tea ~0.9", type="preference", tags=["drink"], metadata={"cups": 2}, position=3
            ),
            user_id="alice",
        )
        opened.add(MemoryEntry("bread ~0.7", expires_at=NOON + timedelta(days=2)), user_id="alice")
        yield opened


def test_a_row_has_the_hit_and_its_memory(memory):
    found = memory.search("query", user_id="alice")
    frame = found.to_pandas()
    assert len(frame) == 2
    names = list(frame.columns)
    assert names[:3] == ["score", "similarity", "id"]
    assert {"content", "user_id", "type", "created_at", "metadata", "source"} <= set(names)
    assert "embedding" not in names
    assert "entry" not in names
    assert list(frame["score"]) == [hit.score for hit in found]
    assert list(frame["id"]) == [str(hit.id) for hit in found]
    assert list(frame["content"]) == ["tea ~0.9", "bread ~0.7"]
    assert list(frame["type"]) == ["preference", "fact"]
    assert list(frame["status"]) == ["active", "active"]
    assert list(frame["tags"]) == [["drink"], []]
    assert list(frame["metadata"]) == [{"cups": 2}, {}]
    assert list(frame["components.similarity"]) == [hit.components["similarity"] for hit in found]
    assert frame["created_at"][0] == found[0].created_at
    assert frame["expires_at"][1] == NOON + timedelta(days=2)


def test_types_do_not_depend_on_the_values(memory):
    full, empty = (memory.search("query", user_id=user) for user in ("alice", "nobody"))
    some = full[1:]
    for frame in (full.to_pandas(), some.to_pandas(), empty.to_pandas()):
        types = {name: str(frame.dtypes[name]) for name in ("score", "similarity", "position")}
        assert types == {"score": "float64", "similarity": "float64", "position": "Int64"}
        assert {str(frame.dtypes[name]) for name in TIMES} == {"datetime64[us, UTC]"}
    assert len(empty.to_pandas()) == 0
    parts = {name for name in full.to_pandas().columns if name.startswith("components.")}
    assert set(full.to_pandas().columns) - parts == set(empty.to_pandas().columns)


def test_pages_retrievals_and_recalls_become_frames_too(memory):
    page = memory.list(user_id="alice", embeddings=True).to_pandas()
    assert list(page["content"]) == [entry.content for entry in memory.list(user_id="alice")]
    assert all(isinstance(vector, np.ndarray) for vector in page["embedding"])
    assert "score" not in page.columns
    retrieved = memory.retrieve("query", user_id="alice").to_pandas()
    assert list(retrieved["rank"]) == [1, 2]
    assert "scores.recency" in retrieved.columns
    recalled = memory.recall("query", user_id="alice").to_pandas()
    assert list(recalled.columns)[:2] == ["score", "match_reason"]


def test_without_pandas_the_error_names_what_to_install(monkeypatch):
    with Memory(":memory:", embedder=None) as memory:
        memory.add("tea")
        page = memory.list()
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtraError, match="pip install pandas"):
            page.to_pandas()
