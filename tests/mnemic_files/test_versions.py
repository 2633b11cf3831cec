"""Files that replace each other: chains, cycles, forks and new versions."""

import pytest

from mnemic_files.errors import MemoryFileNotFoundError, VersionChainError
from tests.support.memory_files import NOON, ids, memory_file


@pytest.mark.requirement("T056")
def test_a_chain_leads_from_the_oldest_to_the_newest(directory, files):
    for one in (directory, files):
        first = memory_file()
        one.write(first)
        second = one.new_version(first.id, "Spaces, not tabs.")
        assert one.version_chain(second.id) == [first, second]
        assert one.version_chain(second.id, 1) == [second]
        assert one.latest_version(first.id) == second
        assert one.latest_version(second.id) == second


@pytest.mark.requirement("T056", "C135")
def test_a_chain_may_cross_the_scopes(files):
    first = memory_file(scope="user")
    second = memory_file(supersedes=first.id)
    files.write(first)
    files.write(second)
    assert files.version_chain(second.id) == [first, second]
    assert files.latest_version(first.id) == second


@pytest.mark.requirement("T057")
def test_a_long_chain_is_cut_at_its_depth(directory):
    for number in range(9):
        before = f"mem_{number - 1}" if number else None
        directory.write(memory_file(f"mem_{number}", supersedes=before))
    assert ids(directory.version_chain("mem_8", 5)) == [f"mem_{number}" for number in range(4, 9)]
    assert directory.latest_version("mem_0").id == "mem_8"


@pytest.mark.requirement("T057")
def test_a_cycle_ends(directory):
    directory.write(memory_file("mem_1", supersedes="mem_2"))
    directory.write(memory_file("mem_2", supersedes="mem_1"))
    with pytest.raises(VersionChainError, match="cycle detected"):
        directory.latest_version("mem_1")
    assert len(directory.version_chain("mem_1", max_depth=5)) == 5
    assert len(directory.version_chain("mem_1")) == 100


@pytest.mark.requirement("T056")
def test_a_missing_predecessor_is_named(directory):
    directory.write(memory_file("mem_2", supersedes="mem_1"))
    with pytest.raises(VersionChainError, match="mem_1"):
        directory.version_chain("mem_2")
    with pytest.raises(MemoryFileNotFoundError):
        directory.version_chain("mem_1")
    with pytest.raises(MemoryFileNotFoundError):
        directory.latest_version("mem_1")


@pytest.mark.requirement("C135")
def test_of_two_successors_the_one_updated_last_counts(directory):
    directory.write(memory_file("mem_1"))
    directory.write(memory_file("mem_a", supersedes="mem_1", minutes=5))
    directory.write(memory_file("mem_b", supersedes="mem_1", minutes=9))
    assert directory.latest_version("mem_1").id == "mem_b"
    directory.write(memory_file("mem_0", supersedes="mem_1", minutes=9))
    assert directory.latest_version("mem_1").id == "mem_0"


@pytest.mark.requirement("T058")
def test_a_new_version_copies_its_predecessor(directory):
    old = memory_file(version=4, related=[("mem_1", "refines")], keys={"labels": ["a"]})
    directory.write(old)
    new = directory.new_version(old.id, "new", session_id="t", trigger="compaction")
    assert new.id != old.id
    assert (new.supersedes, new.version, new.scope, new.category) == (old.id, 5, "repo", "patterns")
    assert (new.session_id, new.trigger, new.content) == ("t", "compaction", "new")
    assert (new.created_at, new.updated_at) == (NOON, NOON)
    assert new.related == old.related
    old.keys["labels"].append("b")
    assert new.keys == {"labels": ["a"]}
    assert directory.read(new.id) == new
    assert directory.read(old.id).version == 4


@pytest.mark.requirement("T058", "T053")
@pytest.mark.parametrize("scope", ["repo", "user"])
def test_a_new_version_stands_in_the_same_scope(files, scope):
    old = memory_file(scope=scope)
    files.write(old)
    new = files.new_version(old.id, "a better fact")
    assert files.list(scope=scope) == sorted([old, new], key=lambda file: file.id)
