"""Random programs of writes and runs: no payload shows what its user may not be shown any more."""

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mnemic import Memory, MemoryEntry
from mnemic.policy import CircuitBreaker, RetrievalConfig, RetrievalPolicy, RetrievalRequest
from tests.policy.test_breaker import Timer
from tests.support.clock import SECOND, Clock
from tests.support.tiers import examples

USERS = ("alice", "bob", None)
QUESTIONS = ("bike", "bike red", "car")
CONFIG = RetrievalConfig(search_type="keyword", min_score=0.0, timeout=None, top_k=10)
MINUTE = timedelta(seconds=60)


class Gate:
    """A limiter that is open or shut."""

    is_open = True

    def acquire(self, _user):
        return self.is_open


class Machine(RuleBasedStateMachine):
    """A memory, a policy over it, and what each user could be shown at each moment.

    The twin: what a whole search found at a moment may be shown for a minute, as long as nothing of
    the user was written and none of its memories expired; what is shown otherwise is present now.
    """

    @initialize()
    def open(self):
        self.clock, self.timer, self.gate, self.fails = Clock(), Timer(), Gate(), False
        self.memory = Memory(":memory:", embedder=None, clock=self.clock)
        self.breaker = CircuitBreaker(2, 30, clock=self.timer)
        self.policy = RetrievalPolicy(
            self.memory, CONFIG, limiter=self.gate, breaker=self.breaker, clock=self.timer
        )
        self.number = 0
        self.present = {user: {} for user in USERS}  # id: content and expiry
        self.kept = {}  # user and question: contents and when they were found
        finder, whole = self.memory.repository.finder, self.memory.repository.finder.find

        def find(*arguments):
            if self.fails:
                raise OSError("no disk")
            return whole(*arguments)

        finder.find = find

    def teardown(self):
        if hasattr(self, "memory"):
            self.memory.close()

    def changed(self, user):
        self.kept = {key: value for key, value in self.kept.items() if key[0] != user}

    @rule(user=st.sampled_from(USERS), lasts=st.sampled_from([None, 5, 45, 90]))
    def add(self, user, lasts):
        if len(self.living(user)) >= CONFIG.top_k:
            return
        self.number += 1
        expiry = None if lasts is None else self.clock.now + lasts * SECOND
        content = f"The red bike and the car number {self.number}"
        entry = self.memory.add(MemoryEntry(content, expires_at=expiry), user_id=user)
        self.present[user][entry.id] = content, expiry
        self.changed(user)

    @rule(user=st.sampled_from(USERS), data=st.data(), permanent=st.booleans())
    def delete(self, user, data, permanent):
        if self.living(user):
            entry_id = data.draw(st.sampled_from(sorted(self.living(user))))
            self.memory.delete(entry_id, user_id=user, permanent=permanent)
            del self.present[user][entry_id]
            self.changed(user)

    @rule(user=st.sampled_from(USERS), data=st.data())
    def update(self, user, data):
        if self.living(user):
            entry_id = data.draw(st.sampled_from(sorted(self.living(user))))
            self.number += 1
            content = f"A bike, once more a car {self.number}"
            self.memory.update(entry_id, content=content, user_id=user)
            self.present[user][entry_id] = content, self.present[user][entry_id][1]
            self.changed(user)

    @rule(user=st.sampled_from(USERS), permanent=st.booleans())
    def delete_all(self, user, permanent):
        if self.living(user):
            self.memory.delete_all(user_id=user, permanent=permanent)
            self.changed(user)
        self.present[user] = {}

    @rule(seconds=st.sampled_from([1, 4, 20, 60]))
    def wait(self, seconds):
        self.clock.now += seconds * SECOND
        self.timer.now += seconds

    @rule()
    def gate_turns(self):
        self.gate.is_open = not self.gate.is_open

    @rule()
    def disk_turns(self):
        self.fails = not self.fails

    @rule(user=st.sampled_from(USERS), question=st.sampled_from(QUESTIONS))
    def ask(self, user, question):
        payload = self.policy.run(RetrievalRequest(question, user, "s"))
        shown, metadata = {each.content for each in payload.memories}, payload.metadata
        living = {content for content, _ in self.living(user).values()}
        assert shown <= living
        kept = self.kept.get((user, question))
        if metadata.from_cache:
            contents, found_at, _ = kept
            assert shown == contents
            assert metadata.age == (self.clock.now - found_at).total_seconds() <= 60
        elif metadata.error is None:
            assert shown == living
            if metadata.trigger:
                self.kept[user, question] = shown, self.clock.now, self.next_expiry(user)
        else:
            assert shown == set()
            assert kept is None or not self.is_valid(kept)
        if not self.gate.is_open:
            assert metadata.error.code == "RATE_LIMITED"

    def living(self, user):
        now = self.clock.now
        return {
            entry_id: (content, expiry)
            for entry_id, (content, expiry) in self.present[user].items()
            if expiry is None or now < expiry
        }

    def next_expiry(self, user):
        return min((end for _, end in self.living(user).values() if end is not None), default=None)

    def is_valid(self, kept):
        _, found_at, ends_at = kept
        now = self.clock.now
        return now - found_at <= MINUTE and (ends_at is None or now < ends_at)

    @invariant()
    def the_cache_holds_only_what_is_valid_or_can_be(self):
        if hasattr(self, "policy"):
            assert len(self.policy._guard._cache) <= len(self.kept)


Machine.TestCase.settings = examples(60, stateful_step_count=40)
TestPolicy = Machine.TestCase
