"""Few memories, queries, filters and times, so that they meet."""

from datetime import timedelta

from hypothesis import strategies as st

from mnemic.licensing import LicenseTier
from mnemic.model import (
    MemoryStatus,
    MemoryType,
)
from tests.support.clock import DAY, NOON, SECOND

EVERYBODY = "everybody"
OWN = "own"

# Few values, so that they meet.

TEXTS = (
    *("tea at noon", "Tea at noon!", "tea", "green tea", "ferry", "ferry at noon", "café"),
    *("ferry ferry tea", "CAFE\u0301", "a green ferry carries tea and żółta herbata to the café"),
)
QUERIES = ("tea", "ferry noon", "green", "café tea", "nothing")
# At most two words: a sum of two products is the same in any order, so ties are the same too.

users = st.sampled_from([None, "alice", "bob"])
scopes = st.sampled_from([None, "alice", "bob", EVERYBODY])
"""Of calls that look for many."""
aimed_scopes = st.sampled_from([OWN] * 6 + [None, "alice", EVERYBODY])
"""Of calls that name a memory: mostly the one it is in."""
front_scopes = st.sampled_from([OWN, OWN, OWN, None, "alice"])
contents = st.sampled_from([*TEXTS, *TEXTS[:2] * 4])
indexes = st.integers(0, 30)
tag_lists = st.lists(st.sampled_from(["ui", "web", "Web", "red"]), max_size=3)
importances = st.sampled_from([0.0, 0.3, 0.5, 1.0])
types = st.sampled_from([MemoryType.FACT, MemoryType.EVENT, MemoryType.PREFERENCE])
metadata = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([None, 1, 1.5, "x"]))
tiers = st.sampled_from(
    [LicenseTier.ENTERPRISE, LicenseTier.TEAMS, LicenseTier.TEAMS, LicenseTier.WRITER_PRO]
)
spares = st.sampled_from([2, 3, 5, 8, 10, 11, 12, 22, 60])
"""Bytes left when a limited door is opened; contents are of 3, 5, 9, 11, 12 and more."""
limits = st.sampled_from([1, 2, 3, 10, 1000])
ages = st.sampled_from([0 * DAY, 0 * DAY, timedelta(hours=1), DAY, 200 * DAY, -DAY])
lifetimes = st.sampled_from([None] * 6 + [-SECOND, 0 * DAY, SECOND, DAY, 89 * DAY, 100 * DAY])
steps = st.sampled_from(
    [SECOND, SECOND, timedelta(hours=1), DAY, 89 * DAY, 90 * DAY, 90 * DAY + SECOND / 10**6]
)
update_fields = st.fixed_dictionaries(
    {},
    optional={
        "content": contents,
        "importance": importances,
        "add_tags": tag_lists.map(tuple),
        "remove_tags": tag_lists.map(tuple),
        "type": types,
        "metadata": metadata,
    },
)
entry_fields = st.fixed_dictionaries(
    {
        "content": contents,
        "user_id": users,
        "type": types,
        "tags": tag_lists,
        "importance": importances,
        "metadata": metadata,
        "project_id": st.sampled_from([None, "p", "q"]),
        "session_id": st.sampled_from([None, "s"]),
        "status": st.sampled_from([MemoryStatus.ACTIVE] * 8 + [*MemoryStatus]),
    },
)
blueprints = st.fixed_dictionaries(
    {
        "fields": entry_fields,
        "index": st.none() | st.integers(0, 5),
        "age": ages,
        "lifetime": lifetimes,
        "supersedes": st.none() | st.none() | indexes,
        "key": st.sampled_from([None, None, "k", "l"]),
        "vector_of": st.sampled_from([None, None, None, *TEXTS[:3]]),
    }
)
duplicate_ways = st.sampled_from(["keep", "keep", "skip", "merge"])
tests = st.sampled_from(
    [
        {},
        {"type": "fact"},
        {"tags": {"contains": "web"}},
        {"tags": {"any": ["ui", "red"]}},
        {"importance": {"gte": 0.5}},
        {"metadata.a": 1},
        {"metadata.a": {"exists": False}},
        {"metadata.b": {"ne": "x"}},
        {"content": {"contains": "TEA"}},
        {"content": {"contains": "cafe\u0301"}},
        {"created_at": {"lt": "2026-05-01T12:00:00Z"}},
        {"updated_at": {"gt": "2026-05-01T12:00:00Z"}},
        {"status": "superseded"},
        {"status": {"nin": ["active"]}},
        {"access_count": {"gt": 0}},
        {"last_accessed_at": None},
        {"expires_at": {"exists": True}},
        {"project_id": "p", "session_id": "s"},
    ]
)
wheres = (
    tests
    | st.lists(tests, max_size=3).map(lambda parts: {"OR": parts})
    | st.lists(tests, max_size=3).map(lambda parts: {"AND": parts})
    | tests.map(lambda part: {"NOT": part})
)
options = st.fixed_dictionaries(
    {},
    optional={
        "types": st.lists(types, max_size=2),
        "tags": tag_lists,
        "any_tags": tag_lists,
        "min_importance": importances,
        "created_after": st.sampled_from([NOON, NOON - DAY, NOON + DAY]),
        "created_before": st.sampled_from([NOON, NOON + SECOND, NOON + 100 * DAY]),
        "content_contains": st.sampled_from(["tea", "ÉRRY", "CAFÉ", "żół"]),
        "include_forgotten": st.sampled_from([True]),
    },
)
some_options = st.none() | options
