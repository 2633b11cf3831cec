"""The list of an agent's users with their sums, for operators."""

from uuid import UUID

import apsw
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import InvalidArgumentError, LicenseRestrictionError, StoreClosedError
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.model import UserUsage
from tests.support.clock import DAY, NOON, Clock
from tests.support.doors import opened


def shown(users):
    return [(user.user_id, user.active_entries, user.storage_bytes_used) for user in users]


def test_users_are_listed_in_pages_and_by_prefix():
    with opened(clock=Clock(NOON)) as memory:
        for number in range(30):
            memory.add("abc", user_id=f"team-{number % 3}/user-{number:02}")
        memory.add("nobody's")
        everybody = memory.users()
        assert (len(everybody), everybody[0]) == (31, UserUsage(None, 1, 8))
        pages = [memory.users(limit=7, offset=offset) for offset in range(0, 35, 7)]
        assert [user for page in pages for user in page] == everybody
        names = [user.user_id for user in memory.users(prefix="team-1/", limit=3)]
        assert names == ["team-1/user-01", "team-1/user-04", "team-1/user-07"]
        assert memory.users(prefix="tea%") == memory.users(prefix="x") == []


def test_a_user_is_listed_until_nothing_of_theirs_is_left():
    clock = Clock(NOON)
    with opened(clock=clock) as memory:
        memory.add(MemoryEntry("abc", expires_at=NOON + DAY), user_id="alice")
        assert shown(memory.users()) == [("alice", 1, 3)]
        clock.now = NOON + DAY
        assert shown(memory.users()) == [("alice", 0, 3)]
        assert memory.purge(expired=True, user_id="alice") == 1
        assert memory.users() == []


def test_agents_do_not_see_each_others_users(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, "one") as one, opened(path, "two", user_quota=4) as two:
        one.add("abcd", user_id="alice")
        two.add("ab", user_id="alice")
        two.add("abcd", user_id="carol")
        assert shown(one.users()) == [("alice", 1, 4)]
        assert shown(two.users()) == [("alice", 1, 2), ("carol", 1, 4)]


def test_no_view_has_the_list_of_users():
    with opened() as memory:
        for scope in ({"user_id": "alice"}, {"project_id": "p"}, {}):
            assert not hasattr(memory.scoped(**scope), "users")


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 1001}, {"offset": -1}, {"prefix": 5}, {"prefix": "\0"}]
)
def test_the_arguments_of_users_are_checked(wrong):
    with opened() as memory, pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        memory.users(**wrong)


def test_the_list_needs_an_open_memory_and_a_license():
    with (
        Memory(":memory:", embedder=None, license=DocumentedLicenses(LicenseTier.CORE)) as memory,
        pytest.raises(LicenseRestrictionError),
    ):
        memory.users()
    with opened() as memory:
        pass
    with pytest.raises(StoreClosedError):
        memory.users()


def test_wrong_sums_of_users_are_found_and_repaired(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.add("12345", user_id="alice")
        memory.add("123", id=UUID(int=1))
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE agent_memory_walls SET used_bytes = 7 WHERE user_key = 'alice'")
    connection.execute("DELETE FROM agent_memory_walls WHERE user_key = ''")
    connection.execute("INSERT INTO agent_memory_walls VALUES ('default', 'gone', 3, 9)")
    connection.close()
    with opened(path) as memory:
        report = memory.verify(repair=True)
        assert [problem.what for problem in report.problems] == [
            "has 3 bytes of content without a user, and 0 were counted",
            "has 5 bytes of content of user 'alice', and 7 were counted",
            "has 0 bytes of content of user 'gone', and 9 were counted",
        ]
        assert {problem.agent_id for problem in report.problems} == {"default"}
        assert report.repaired_agents == ("default",)
        again = memory.verify(repair=True)
        assert (again.problems, again.repaired_agents) == ((), ())
        assert shown(memory.users()) == [(None, 1, 3), ("alice", 1, 5)]
