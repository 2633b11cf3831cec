"""A memory follows its files: what is added, changed, gone, back, bad, or of somebody else."""

import asyncio
import logging
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import AsyncMemory, Memory, MemoryEntry, MemoryStatus
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import EmbeddingError, InvalidArgumentError
from mnemic.model import LinkType
from mnemic_files import MemoryFiles
from mnemic_files.ids import entry_id
from tests.support.clock import Clock
from tests.support.memory_files import EVERY_STATE, NOON, contents, drop, memory_file, put
from tests.support.tiers import examples


def uuid_id():
    return f"mem_{uuid4()}"


@pytest.mark.requirement("R329")
def test_files_of_both_scopes_become_memories(files, memory):
    repo = memory_file(uuid_id(), version=3, category="corrections", related=[("mem_x", "refines")])
    user = memory_file("mem_x", "Likes tabs.", scope="user", session_id="none", minutes=5)
    for file in (repo, user):
        files.write(file)
    result = files.synchronise(memory)
    assert result.added == tuple(sorted([repo.id, "mem_x"]))
    assert (result.changed, result.removed, result.unchanged, result.problems) == ((), (), 0, ())
    first = memory.get(repo.id.removeprefix("mem_"))
    assert (first.content, first.scope, first.category) == (repo.content, "repo", "corrections")
    assert (first.version, first.session_id, first.type.value) == (3, "s", "correction")
    assert (first.created_at, first.updated_at) == (NOON, NOON)
    assert first.metadata["trigger"] == "cadence"
    assert first.source == files.directory("repo").path_of(repo.id)
    second = memory.get(entry_id("mem_x"))
    assert (second.scope, second.metadata["memory_file"]) == ("user", "mem_x")
    assert second.session_id is None
    assert second.id.version == 5
    (link,) = memory.links(first.id)
    assert (link.from_id, link.to_id, link.type) == (first.id, second.id, LinkType.REFINES)


def test_an_edited_file_changes_its_memory(files, memory):
    file = memory_file(keys={"tags": ["style"], "importance": 0.9, "type": "preference"})
    files.write(file)
    files.synchronise(memory)
    entry = memory.get(file.entry_id)
    assert (entry.tags, entry.importance, entry.type.value) == (("style",), 0.9, "preference")
    memory.update(file.entry_id, metadata={"seen": True}, add_tags=["mine"])
    put(files, memory_file(file.id, "Spaces.", version=2, category="patterns"))
    result = files.synchronise(memory)
    assert (result.added, result.changed, result.removed) == ((), (file.id,), ())
    entry = memory.get(file.entry_id)
    assert (entry.content, entry.created_at) == ("Spaces.", NOON)
    assert entry.version == 3
    assert entry.metadata["memory_file_version"] == 2
    assert entry.metadata["seen"] is True
    assert entry.tags == ("style", "mine")
    assert [hit.content for hit in memory.search("spaces")] == ["Spaces."]
    assert not memory.search("tabs")


def test_a_file_that_is_back_after_the_retention_is_stored_anew(files):
    clock, file = Clock(), memory_file()
    with Memory(":memory:", embedder=None, clock=clock, retention=7) as memory:
        for days, version in ((7, 1), (8, 2)):
            put(files, file)
            files.synchronise(memory)
            drop(files, file)
            files.synchronise(memory)
            clock.now += timedelta(days=days)
            put(files, file)
            assert files.synchronise(memory).added == (file.id,)
            assert memory.get(file.entry_id).version == version


def test_memories_of_files_that_are_gone_stay_by_option(files, memory):
    file = memory_file()
    files.write(file)
    files.write(memory_file(content="other"))
    files.synchronise(memory)
    drop(files, file)
    assert not files.synchronise(memory, keep_removed=True)
    assert file.content in contents(memory)
    assert files.synchronise(memory).removed == (file.id,)


def test_all_versions_of_a_first_synchronisation_keep_their_numbers(files, memory):
    first = memory_file("mem_z")
    files.write(first)
    second = files.new_version("mem_z", "two")
    third = files.new_version(second.id, "three")
    files.synchronise(memory)
    versions = {one.content: one.version for one in memory.list(filters=EVERY_STATE)}
    assert versions == {first.content: 1, "two": 2, "three": 3}
    assert contents(memory) == {"three"}
    assert memory.get(third.entry_id).supersedes == second.entry_id


@pytest.mark.requirement("C135")
def test_edges_to_unknown_ids_wait_for_their_file(files, memory, caplog):
    later, oldest = memory_file(content="later"), memory_file(content="oldest")
    first = memory_file(supersedes=oldest.id, related=[(later.id, "contradicts")])
    files.write(first)
    with caplog.at_level(logging.WARNING, "mnemic_files"):
        result = files.synchronise(memory)
        files.synchronise(memory)
    assert len(result.problems) == 2
    assert len(caplog.records) == 2  # once each
    assert memory.links(first.entry_id) == []
    assert memory.get(first.entry_id).supersedes is None
    files.write(later)
    files.write(oldest)
    assert files.synchronise(memory).problems == ()
    found = {link.type: link.to_id for link in memory.links(first.entry_id, direction="out")}
    assert found[LinkType.CONTRADICTS] == later.entry_id
    assert found[LinkType.SUPERSEDES] == oldest.entry_id
    assert contents(memory) == {first.content, "later"}


@pytest.mark.requirement("C135", "T057")
def test_files_that_supersede_each_other_are_all_found(files, memory):
    files.write(memory_file("mem_1", "one", supersedes="mem_2"))
    files.write(memory_file("mem_2", "two", supersedes="mem_1"))
    files.write(memory_file("mem_3", "three", supersedes="mem_3"))
    result = files.synchronise(memory)
    assert contents(memory) == {"one", "two", "three"}
    assert len(result.problems) == 3
    assert not files.synchronise(memory)


def test_other_memories_are_not_touched(files, memory):
    taken = uuid4()
    program = memory.add(
        MemoryEntry("the program's own", id=taken, source=files.directory("repo").path)
    )
    looks_alike = memory.add("another", metadata={"memory_file": "mem_1"})
    files.write(memory_file(f"mem_{taken}", "of a file"))
    files.write(memory_file(content="good"))
    result = files.synchronise(memory)
    assert len(result.added) == 1
    assert [one.name for one in result.problems] == [f"mem_{taken}.md"]
    assert memory.get(taken) == program
    assert memory.get(looks_alike.id) == looks_alike
    files.synchronise(memory)
    assert contents(memory) == {"the program's own", "another", "good"}


def test_what_a_program_supersedes_stays_superseded(files, memory):
    file = memory_file()
    files.write(file)
    files.synchronise(memory)
    own = memory.add("better", supersedes=file.entry_id)
    for again in (files, MemoryFiles(*(one.path for one in files.directories))):
        assert not again.synchronise(memory)
        assert contents(memory) == {"better"}
    assert memory.get(own.id).supersedes == file.entry_id


def test_links_of_the_program_stay_when_a_file_is_edited(files, memory):
    one, two = memory_file(), memory_file(content="two")
    three = memory_file(content="three", related=[(one.id, "refines"), (two.id, "refines")])
    for file in (one, two, three):
        files.write(file)
    files.synchronise(memory)
    own = memory.add("own")
    memory.link(three.entry_id, own.id, "reinforces", 0.25)
    memory.link(own.id, three.entry_id, "derived_from")
    put(files, memory_file(three.id, "edited", related=[(two.id, "refines")]))
    files.synchronise(memory)
    found = {(link.to_id, link.type, link.strength) for link in memory.links(three.entry_id)}
    assert found == {
        (two.entry_id, LinkType.REFINES, 1.0),
        (own.id, LinkType.REINFORCES, 0.25),
        (three.entry_id, LinkType.DERIVED_FROM, 1.0),
    }


def test_a_memory_whose_file_is_there_comes_back(files, memory):
    first = memory_file()
    files.write(first)
    second = files.new_version(first.id, "two")
    files.synchronise(memory)
    for permanent in (False, True):
        memory.delete(first.entry_id, permanent=permanent)
        put(files, memory_file(second.id, f"two {permanent}", supersedes=first.id))
        files.synchronise(memory)
        states = {one.content: one.status for one in memory.list(filters=EVERY_STATE)}
        assert states[f"two {permanent}"] is MemoryStatus.ACTIVE
        again = MemoryFiles(*(one.path for one in files.directories))
        again.synchronise(memory)
        states = {one.content: one.status for one in memory.list(filters=EVERY_STATE)}
        assert states[first.content] is MemoryStatus.SUPERSEDED


def test_a_memory_deleted_long_ago_is_stored_again(files):
    now = [NOON]
    with Memory(":memory:", embedder=None, clock=lambda: now[0]) as memory:
        file = memory_file()
        files.write(file)
        files.synchronise(memory)
        drop(files, file)
        files.synchronise(memory)
        now[0] += timedelta(days=200)
        put(files, file)
        assert files.synchronise(memory).added == (file.id,)
        assert contents(memory) == {file.content}


def test_users_do_not_see_each_other(files, memory):
    file = memory_file()
    files.write(file)
    alice, bob = memory.scoped(user_id="alice"), memory.scoped(user_id="bob")
    assert files.synchronise(alice).added == (file.id,)
    assert contents(bob) == contents(memory) == set()
    assert files.synchronise(bob).added == (file.id,)
    memory.delete(file.entry_id, user_id="alice")
    assert contents(bob) == {file.content}
    drop(files, file)
    assert files.synchronise(bob).removed == (file.id,)
    assert contents(bob) == set()
    assert len(alice.list(include_deleted=True).entries) == 1


def test_projects_keep_their_own(files, memory, tmp_path):
    file = memory_file()
    files.write(file)
    one, two = memory.scoped(project_id="one"), memory.scoped(project_id="two")
    files.synchronise(one)
    result = files.synchronise(two)
    assert not result
    assert "did not come" in result.problems[0].reason
    assert contents(one) == {file.content}
    assert contents(two) == set()
    other = MemoryFiles(repo=tmp_path / "other")
    other.write(memory_file(content="of the other"))
    other.synchronise(memory)
    assert contents(memory) == {file.content, "of the other"}
    files.synchronise(memory)
    assert contents(memory) == {file.content, "of the other"}


@pytest.mark.parametrize("wrong", [None, "path", object()])
def test_what_is_no_memory_is_refused(files, wrong):
    with pytest.raises(InvalidArgumentError):
        files.synchronise(wrong)


def test_a_view_of_a_session_is_refused(files, memory):
    with pytest.raises(InvalidArgumentError):
        files.synchronise(memory.scoped(session_id="s"))


class Failing:
    model, dimensions = "failing", 2

    def __init__(self):
        self.is_down = True
        self.texts = []

    def embed(self, texts):
        if self.is_down:
            raise RuntimeError("down")
        self.texts.append(list(texts))
        return [[1.0, 0.0] for _ in texts]


def test_an_embedder_that_fails_changes_nothing_and_may_be_repeated(files):
    embedder = Failing()
    with Memory(":memory:", embedder=embedder) as memory:
        first = memory_file()
        files.write(first)
        second = files.new_version(first.id, "two")
        with pytest.raises(EmbeddingError):
            files.synchronise(memory)
        assert contents(memory) == set()
        embedder.is_down = False
        assert files.synchronise(memory).added == tuple(sorted([first.id, second.id]))
        assert embedder.texts == [[first.content, "two"]]  # one batch
        put(files, memory_file(first.id, first.content, category="corrections"))
        files.synchronise(memory)
        assert len(embedder.texts) == 1  # the contents are the same
        embedder.is_down = True
        files.write(memory_file(content="three"))
        assert files.synchronise(memory, on_embed_error="pending")
        assert contents(memory) == {"two", "three"}


def test_progress_is_reported(files, memory):
    for at in range(3):
        files.write(memory_file(content=f"text {at}"))
    reported = []
    files.synchronise(memory, progress=lambda done, total: reported.append((done, total)))
    assert reported == [(0, 3), (3, 3)]


def test_other_doors(files):
    file = memory_file()
    files.write(file)

    async def run():
        async with AsyncMemory(":memory:", embedder=None) as memory:
            view = memory.scoped(user_id="alice")
            first, second = await asyncio.gather(
                files.synchronise_async(view), files.synchronise_async(memory)
            )
            assert first.added == second.added == (file.id,)
            assert (await view.get(file.entry_id)).content == file.content
            put(files, memory_file(file.id, "edited"))
            assert files.synchronise(memory).changed == (file.id,)
            assert (await memory.get(file.entry_id)).content == "edited"
            assert not await files.synchronise_async(memory)

    asyncio.run(run())
    long_term = AsyncLongTermMemory(":memory:", agent_id="agent", embedder=None)
    with long_term.memory.sync as memory:
        assert files.synchronise(long_term).added == (file.id,)
        assert files.synchronise(memory).unchanged == 1


def test_an_id_of_another_form_has_the_same_memory_each_time():
    assert entry_id("mem_1") == entry_id("mem_1") != entry_id("mem_2")
    given = UUID("9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d")
    assert entry_id(f"mem_{given}") == given
    others = [f"mem_{str(given).upper()}", f"mem_{given.hex}", str(given), f"mem_{{{given}}}"]
    assert len({given, *map(entry_id, others)}) == 5


# Random edits, beside dicts

NUMBERS = st.integers(1, 4)
EDITS = st.one_of(
    st.tuples(st.just("put"), NUMBERS, st.sampled_from("ab"), st.none() | NUMBERS),
    st.tuples(st.just("drop"), NUMBERS),
    st.tuples(st.just("relate"), NUMBERS, NUMBERS),
    st.tuples(st.just("new process")),
)


class Twin:
    """Files as texts by number, and what each supersedes and refines."""

    def __init__(self):
        self.texts, self.older, self.refined, self.known = {}, {}, {}, set()

    def edit(self, verb, number=None, *what):
        if verb == "put":
            self.texts[number], self.older[number] = what
        elif verb == "drop":
            self.texts.pop(number, None)
        elif verb == "relate":
            self.refined[number] = what[0]

    def file(self, number):
        older, refined = self.older[number], self.refined.get(number)
        return memory_file(
            f"mem_{number}",
            f"{number} {self.texts[number]}",
            supersedes=older and f"mem_{older}",
            related=[(f"mem_{refined}", "refines")] if refined else (),
        )

    def is_in_a_circle(self, number):
        at = self.older[number]
        for _ in self.texts:
            if at == number:
                return True
            at = self.older[at] if at in self.texts else None
        return False

    def predecessors(self):
        return {
            entry_id(f"mem_{one}"): entry_id(f"mem_{self.older[one]}")
            for one in self.texts
            if self.older[one] in self.texts and not self.is_in_a_circle(one)
        }

    def links(self):
        pairs = {(one, self.refined.get(one)) for one in self.texts}
        return {(one, other) for one, other in pairs if other in self.texts and one != other}

    def check(self, result, memory):
        numbers, ids = set(self.texts), self.predecessors()
        assert result.added == names_of(numbers - self.known)
        assert result.removed == names_of(self.known - numbers)
        outdated = set(ids.values())
        current = [one for one in numbers if entry_id(f"mem_{one}") not in outdated]
        assert contents(memory) == {f"{one} {self.texts[one]}" for one in current}
        assert predecessors(memory) == ids
        assert refined_in(memory, numbers) == self.links()
        self.known = numbers


def names_of(numbers):
    return tuple(f"mem_{one}" for one in sorted(numbers))


def predecessors(memory):
    listed = memory.list(filters=EVERY_STATE).entries
    stored = {entry.id for entry in listed}
    return {entry.id: entry.supersedes for entry in listed if entry.supersedes in stored}


def refined_in(memory, numbers):
    number_of = {entry_id(f"mem_{one}"): one for one in numbers}
    return {
        (number, number_of[link.to_id])
        for own, number in number_of.items()
        for link in memory.links(own, direction="out")
        if link.type is LinkType.REFINES
    }


@pytest.mark.requirement("R332", "C135", "T056", "T057")
@examples(100, least=30)
@given(st.lists(st.lists(EDITS, min_size=1, max_size=4), min_size=1, max_size=6))
def test_a_memory_follows_any_edits(tmp_path_factory, turns):
    folder, twin = tmp_path_factory.mktemp("files"), Twin()
    files = MemoryFiles(folder / "repo", folder / "user")
    with Memory(":memory:", embedder=None) as memory:
        for edits in turns:
            for edit in edits:
                twin.edit(*edit)
            for number in range(1, 5):
                if number in twin.texts:
                    put(files, twin.file(number))
                elif number in twin.known:
                    drop(files, memory_file(f"mem_{number}"))
            if ("new process",) in edits:
                files = MemoryFiles(*(one.path for one in files.directories))
            twin.check(files.synchronise(memory), memory)
            assert not files.synchronise(memory)
