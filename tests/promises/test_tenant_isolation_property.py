"""Users who give the same ids never meet: whatever one does, another's answers stay as they are.

Two users share a tiny pool of ids. A random program is run with both, and again with each alone, at
the same times; the answers of each, their errors and totals must be the same bytes.
"""

import io
import random
from uuid import UUID

import msgspec
import pytest

from mnemic.errors import MnemicError
from mnemic.model import MemoryEntry, MemoryQuery
from mnemic.policy import RetrievalConfig, RetrievalPolicy, RetrievalRequest
from tests.support.clock import NOON, SECOND
from tests.support.embedders import WordEmbedder
from tests.support.places import KINDS
from tests.support.tiers import seeds
from tests.support.whole import whole

IDS = [UUID(int=number) for number in range(1, 5)]
USERS = ("alice", "bob")
WORDS = ("tea", "ferry", "harbour")
TEXTS = ("tea at noon", "a ferry", "the ferry to the harbour", "more tea", "Tea at noon!")
SEEDS = [(kind, seed) for kind in KINDS for seed in seeds(40 if kind == "sqlite" else 3)]
STEPS = 60


def any_step(draw):
    """Return a user, what to do, and with what."""
    user, (one, two) = draw.choice(USERS), draw.sample(IDS, 2)
    text, word = draw.choice(TEXTS), draw.choice(WORDS)
    name, *given = draw.choice(
        [
            *[("add", one, text, None)] * 5,
            ("add", one, text, two),
            ("add many", [(one, text), (two, word)]),
            ("put", one, text),
            ("put", one, text),
            ("put many", [(one, text), (two, word), (one, word)]),
            ("put nothing", one, text),
            ("skip", one, text),
            ("merge", one, text),
            ("update", one, text),
            ("update", one, text),
            ("delete", one, False),
            ("delete", one, True),
            ("restore", one),
            ("delete all", draw.random() < 0.2),
            ("delete many", [one, two], word),
            ("update many", word, text),
            ("link", one, two),
            ("link", one, two),
            ("unlink", one, two),
            ("links", one),
            ("linked", one),
            ("get", one),
            ("get", one),
            ("touch", [one, two]),
            ("touch for ever", [one, two]),
            ("update", one, text, 1),
            ("list",),
            ("list at", draw.randint(0, 3), word),
            ("count",),
            ("count", word),
            ("get many", [one, two, one]),
            ("distinct", draw.choice(["tags", "message_id", "metadata.n"]), word),
            ("search", word),
            ("search", word),
            ("by access", word),
            ("retrieve", word),
            ("recall", "recent"),
            ("recall", "frequent"),
            ("policy", word),
            ("export",),
            ("import",),
        ]
    )
    return user, name, given


class World:
    """A memory in which some users run their steps of a program."""

    def __init__(self, users, places):
        self.users = users
        self.now = NOON
        embedder = WordEmbedder() if "search_in" in places.options else None  # it needs vectors
        self.memory = places.opened(embedder=embedder, clock=lambda: self.now)
        self.exports = dict.fromkeys(USERS)
        self.answers = {user: [] for user in users}

    def run(self, program):
        with self.memory:
            for number, (user, name, given) in enumerate(program):
                self.now = NOON + number * SECOND
                if user in self.users:
                    self.answers[user].append(self.answer(user, name, given))
            self.left = {user: self.everything(user) for user in USERS}
        return self

    def answer(self, user, name, given):
        try:
            answer = STEPS_BY_NAME[name](self, user, *given)
        except MnemicError as error:
            return name, type(error).__name__, str(error)
        return name, shown(answer)

    def everything(self, user):
        """Return all that a user has, and that a search for all users has of it."""
        page = self.memory.list(user_id=user, include_deleted=True)
        found = self.memory.search("tea", search_type="keyword", limit=100, all_users=True)
        return (
            {entry.id: (entry.content, entry.status.name, entry.is_forgotten) for entry in page},
            sorted(hit.id for hit in found if hit.entry.user_id == user),
        )


def shown(answer):
    """Return an answer as text: entries with every field, scores with every digit.

    Accesses are left out of entries: they are written down at some later time, with or without
    others' writes. What ranks by them and what is exported has them all, and is compared.
    """
    if isinstance(answer, MemoryEntry):
        answer = msgspec.structs.replace(answer, access_count=0, last_accessed_at=None)
    if isinstance(answer, list | tuple):
        return [shown(each) for each in answer]
    return whole(answer)


def add(world, user, entry_id, text, supersedes):
    return world.memory.add(text, id=entry_id, user_id=user, supersedes=supersedes)


def add_many(world, user, wanted):
    given = [{"content": text, "id": entry_id, "user_id": user} for entry_id, text in wanted]
    return world.memory.add_many(given)


def putting(on_conflict):
    def put(world, user, entry_id, text):
        return world.memory.add_many(
            [MemoryEntry(text, id=entry_id)], on_conflict=on_conflict, user_id=user
        )[0]

    return put


def put_many(world, user, wanted):
    given = [{"content": text, "id": entry_id, "user_id": user} for entry_id, text in wanted]
    return world.memory.add_many(given, on_conflict="replace")


def updated(world, user, entry_id, text, version=None):
    return world.memory.update(entry_id, content=text, if_version=version, user_id=user)


def adding(on_duplicate):
    def add(world, user, entry_id, text):
        given = {"id": entry_id, "user_id": user, "tags": [text[:3]]}
        return world.memory.add(text, on_duplicate=on_duplicate, **given)

    return add


def searched(world, user, word, **options):
    found = world.memory.search(word, search_type="keyword", user_id=user, explain=True, **options)
    return [(hit.entry, hit.score, sorted(hit.components.items())) for hit in found]


def retrieved(world, user, word):
    query = MemoryQuery(query=word, search_type="keyword", with_total=True)
    result = world.memory.retrieve(query, user_id=user)
    results = [(each.entry, each.relevance_score, each.rank) for each in result.results]
    return results, result.total_matches


def recalled(world, user, mode):
    result = world.memory.recall(mode=mode, user_id=user)
    return [(each.memory, each.score, each.match_reason) for each in result], result.total_matches


def prompted(world, user, word):
    policy = RetrievalPolicy(world.memory, RetrievalConfig(timeout=None, min_score=0))
    payload = policy.run(RetrievalRequest(word, user, "today"))
    return payload.memories, payload.prompt, payload.metadata.dropped, payload.metadata.trigger


def linked(world, user, entry_id):
    view = world.memory.scoped(user_id=user)
    return view.links(entry_id, direction="out")


def exported(world, user):
    text = io.StringIO()
    world.memory.export(text, user_id=user)
    world.exports[user] = text.getvalue()
    return world.exports[user]


def imported(world, user):
    if world.exports[user] is None:
        return None
    return world.memory.import_(io.BytesIO(world.exports[user].encode()))


def page(world, user):
    return list(world.memory.list(user_id=user, include_deleted=True))


STEPS_BY_NAME = {
    "add": add,
    "add many": add_many,
    "skip": adding("skip"),
    "merge": adding("merge"),
    "put": putting("replace"),
    "put many": put_many,
    "put nothing": putting("skip"),
    "update": updated,
    "delete": lambda world, user, one, permanent: world.memory.delete(
        one, permanent=permanent, user_id=user
    ),
    "restore": lambda world, user, one: world.memory.restore(one, user_id=user),
    "delete all": lambda world, user, is_meant: (
        int(world.memory.delete_all(user_id=user, permanent=True)) if is_meant else None
    ),
    "delete many": lambda world, user, ids, word: int(
        world.memory.delete_many(ids, filters={"content": {"contains": word}}, user_id=user)
    ),
    "update many": lambda world, user, word, text: world.memory.update_many(
        filters={"content": {"contains": word}}, content=text, user_id=user
    ),
    "link": lambda world, user, one, two: world.memory.link(one, two, user_id=user),
    "unlink": lambda world, user, one, two: world.memory.unlink(one, two, user_id=user),
    "links": lambda world, user, one: world.memory.links(one, user_id=user),
    "linked": linked,
    "get": lambda world, user, one: world.memory.get(one, user_id=user),
    "touch": lambda world, user, ids: world.memory.touch(ids, user_id=user),
    "touch for ever": lambda world, user, ids: world.memory.touch(
        ids, user_id=user, expires_at="never"
    ),
    "list": page,
    "list at": lambda world, user, offset, word: list(
        world.memory.list(
            filters={"content": {"contains": word}}, limit=2, offset=offset, user_id=user
        )
    ),
    "count": lambda world, user, *word: world.memory.count(
        filters={"OR": [{"content": {"contains": one}} for one in word]} if word else None,
        user_id=user,
    ),
    "get many": lambda world, user, ids: world.memory.get_many(ids, user_id=user),
    "distinct": lambda world, user, field, word: [
        (one.value, one.count)
        for one in world.memory.distinct(
            field, filters={"content": {"contains": word}}, user_id=user
        )
    ],
    "search": searched,
    "by access": lambda world, user, word: searched(world, user, word, weights={"access": 1}),
    "retrieve": retrieved,
    "recall": recalled,
    "policy": prompted,
    "export": exported,
    "import": imported,
}


@pytest.mark.parametrize(("places", "seed"), SEEDS, indirect=["places"])
def test_the_answers_of_one_user_are_the_same_with_and_without_another(places, seed):
    draw = random.Random(seed)  # noqa: S311 - no secret
    program = [any_step(draw) for _ in range(STEPS)]
    together = World(USERS, places).run(program)
    for user in USERS:
        alone = World((user,), places).run(program)
        assert together.answers[user] == alone.answers[user]
        assert together.left[user] == alone.left[user]


@pytest.mark.parametrize("places", ["sqlite"], indirect=True)
def test_the_programs_meet(places):
    """Show that both users come to hold the same ids, or the test above would show little."""
    shared = 0
    for seed in range(10):
        draw = random.Random(seed)  # noqa: S311 - no secret
        world = World(USERS, places).run([any_step(draw) for _ in range(STEPS)])
        (alices, _), (bobs, _) = (world.left[user] for user in USERS)
        shared += len(alices.keys() & bobs.keys())
    assert shared >= 10
