"""Random sequences of writes over ids agree with a naive model and with a rebuilt index."""

import random
from datetime import timedelta

import pytest

from mnemic.errors import DuplicateEntryError, EntryNotFoundError, VersionConflictError
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import uid
from tests.support.places import Places
from tests.support.tiers import seeds

CASES = [*(("sqlite", seed) for seed in seeds(12)), *(("postgres", seed) for seed in seeds(3))]
STEPS = 60
WORDS = ("red", "blue", "sofa", "chair", "ferry", "noon")
USERS = (None, "alice")
SECOND = timedelta(seconds=1)


class Model:
    """The memories of all users, by user and number."""

    def __init__(self):
        self.now = NOON
        self.kept = {}

    def is_present(self, place):
        kept = self.kept.get(place)
        return kept is not None and not kept["forgotten"] and not self.is_expired(kept)

    def is_active(self, place):
        return self.is_present(place) and self.kept[place]["status"] == 0

    def is_expired(self, kept):
        return kept["expires_at"] is not None and kept["expires_at"] <= self.now

    def store(self, place, fields, way):
        old = self.kept.get(place)
        if old is not None and way == "raise":
            raise DuplicateEntryError
        if old is not None and way == "skip":
            return
        if old is not None:
            for other, kept in self.kept.items():
                if other[0] == place[0] and kept["supersedes"] == place[1] and old["status"] == 2:
                    kept["supersedes"] = None
                    kept["version"] += 1
        self.kept[place] = {
            "content": fields["content"],
            "tags": fields.get("tags", ()),
            "expires_at": fields.get("expires_at"),
            "supersedes": fields.get("supersedes"),
            "created_at": self.now if old is None else old["created_at"],
            "version": 1 if old is None else old["version"] + 1,
            "forgotten": False,
            "status": 0,
        }
        above = self.kept.get((place[0], fields.get("supersedes")))
        if above is not None:
            above["version"] += above["status"] != 2
            above["status"] = 2


class Run:
    """One place, opened twice, beside its model."""

    def __init__(self, places, chosen):
        self.places, self.url, self.chosen, self.model = places, places.new(), chosen, Model()
        self.doors = [self.opened(), self.opened()]

    def opened(self):
        given = {"embedder": WordEmbedder(), "clock": lambda: self.model.now}
        return self.places.opened(url=self.url, **given)

    def place(self):
        return self.chosen.choice(USERS), self.chosen.randrange(8)

    def text(self):
        return " ".join(self.chosen.choices(WORDS, k=3))

    def fields(self, place):
        fields = {"content": self.text(), "tags": tuple(self.chosen.sample("xyz", 2))}
        known = self.model.kept.get(place)
        if known is not None and self.chosen.random() < 0.4:
            fields["content"] = known["content"]
        if self.chosen.random() < 0.3:
            fields["expires_at"] = self.model.now + self.chosen.randrange(9) * SECOND
        return fields

    def put(self, door):
        way = self.chosen.choice(["raise", "replace", "replace", "skip"])
        place = self.place()
        fields = self.fields(place)
        others = [n for user, n in self.model.kept if user == place[0] and n != place[1]]
        if others and self.chosen.random() < 0.3:
            fields["supersedes"] = self.chosen.choice(others)
        given = dict(fields)
        if "supersedes" in given:
            given["supersedes"] = uid(given["supersedes"])
        given |= {"id": uid(place[1]), "user_id": place[0]}
        try:
            self.model.store(place, fields, way)
        except DuplicateEntryError:
            with pytest.raises(DuplicateEntryError):
                door.add_many([given], on_conflict=way)
        else:
            door.add_many([given], on_conflict=way)

    def put_many(self, door):
        way = self.chosen.choice(["replace", "skip"])
        places = [self.place() for _ in range(self.chosen.randrange(1, 8))]
        given = []
        now = self.model.now
        for place in places:
            fields = self.fields(place)
            self.model.store(place, fields, way)
            given.append({**fields, "id": uid(place[1]), "user_id": place[0], "created_at": now})
        door.add_many(given, on_conflict=way)

    def update(self, door):
        place = self.place()
        known = self.model.kept.get(place)
        asked = self.chosen.choice([None, 1, known["version"] if known else 1])
        content = self.chosen.choice([None, self.text()])
        named = {"id": uid(place[1]), "user_id": place[0], "if_version": asked}
        if not self.model.is_active(place):
            with pytest.raises(EntryNotFoundError):
                door.update(content="x", **named)
        elif asked not in {None, known["version"]}:
            with pytest.raises(VersionConflictError):
                door.update(content="x", **named)
        else:
            expiry = self.chosen.choice([None, "never", self.model.now + 5 * SECOND])
            door.update(content=content, expires_at=expiry, **named)
            known["content"] = content or known["content"]
            self.expire(known, expiry)
            known["version"] += content is not None or expiry is not None

    def expire(self, known, expiry):
        if expiry is not None:
            known["expires_at"] = None if expiry == "never" else expiry

    def touch(self, door):
        places = {self.place() for _ in range(4)}
        user = self.chosen.choice(USERS)
        expiry = self.chosen.choice([None, "never", self.model.now + 3 * SECOND])
        door.touch([uid(n) for _, n in places], user_id=user, expires_at=expiry)
        for _, number in places:
            if self.model.is_active((user, number)):
                self.expire(self.model.kept[user, number], expiry)

    def forget(self, door):
        place = self.place()
        permanent = self.chosen.random() < 0.4
        deleted = door.delete_many([uid(place[1])], user_id=place[0], permanent=permanent)
        known = self.model.kept.get(place)
        assert deleted == (known is not None and (permanent or not known["forgotten"]))
        if permanent:
            self.model.kept.pop(place, None)
        elif deleted:
            known["forgotten"] = True

    def restore(self, door):
        place = self.place()
        known = self.model.kept.get(place)
        can = known is not None and known["forgotten"] and not self.model.is_expired(known)
        assert door.restore(uid(place[1]), user_id=place[0]) == can
        if can:
            known["forgotten"] = False

    def wait(self, _):
        self.model.now += self.chosen.randrange(3) * SECOND

    def look(self, door):
        for user in USERS:
            expected = {n for u, n in self.model.kept if u == user and self.model.is_active((u, n))}
            assert {
                hit.id.int for hit in door.search("red sofa", user_id=user, limit=99)
            } == expected
            assert door.count(user_id=user) == len(expected)

    def compare(self, door):
        for user in USERS:
            every = door.list(
                user_id=user,
                limit=99,
                include_deleted=True,
                filters={"status": {"in": ["active", "archived", "superseded"]}},
            )
            assert {entry.id.int: facts(entry) for entry in every} == {
                n: {**kept, "supersedes": kept["supersedes"]}
                for (u, n), kept in self.model.kept.items()
                if u == user
            }


def facts(entry):
    return {
        "content": entry.content,
        "tags": entry.tags,
        "expires_at": entry.expires_at,
        "supersedes": None if entry.supersedes is None else entry.supersedes.int,
        "created_at": entry.created_at,
        "version": entry.version,
        "forgotten": entry.is_forgotten,
        "status": int(entry.status),
    }


def ranked(memory):
    return [
        [(hit.id, pytest.approx(hit.score, rel=1e-6), hit.entry) for hit in found]
        for user in USERS
        for way in ("hybrid", "keyword", "semantic")
        for query in ("red sofa", "blue ferry at noon")
        if (found := memory.search(query, user_id=user, search_type=way, limit=99)) is not None
    ]


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_writes_over_ids_agree_with_a_naive_model_and_a_rebuilt_index(kind, seed, tmp_path):
    with Places(kind, tmp_path) as places:
        compare_with_model(Run(places, random.Random(seed)))  # noqa: S311 - a fixed choice


def compare_with_model(run):
    steps = [run.put, run.put, run.put_many, run.update, run.touch, run.forget, run.restore]
    for _ in range(STEPS):
        door = run.chosen.choice(run.doors)
        run.chosen.choice([*steps, run.wait, run.look])(door)
        run.compare(run.chosen.choice(run.doors))
    assert run.doors[0].verify().ok
    with run.opened() as fresh:
        for door in run.doors:
            run.look(door)
            assert ranked(door) == ranked(fresh)
