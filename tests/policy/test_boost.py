"""The boost of a session: memories of the session of a request rank higher."""

from datetime import timedelta

import pytest

from mnemic import Memory
from mnemic.policy import RetrievalConfig, RetrievalPolicy
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder
from tests.support.policy import BY_KEYWORDS, ids_of, request


@pytest.mark.requirement("C056")
@pytest.mark.parametrize("boost", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("embedder", [None, WordEmbedder()])
def test_a_boosted_ranking_is_that_of_all_memories_by_their_boosted_scores(embedder, boost):
    with Memory(":memory:", embedder=embedder, clock=Clock(step=timedelta(minutes=1))) as memory:
        for number in range(150):
            filler = " ".join(f"word{number * 7 % (each + 3)}" for each in range(number % 23))
            session = "today" if number % 10 == 0 else f"s{number % 4}"
            memory.add(f"harbour {filler}", user_id="alice", session_id=session)
        config = RetrievalConfig(min_score=0).overridden(session_boost=boost)
        payload = RetrievalPolicy(memory, config.overridden(top_k=20)).run(request("harbour word1"))
        seen = [*payload.memories, *payload.metadata.dropped]
        hits = memory.search("harbour word1", limit=150, user_id="alice")
        scores = [min(1.0, hit.score * (boost if hit.session_id == "today" else 1)) for hit in hits]
        best = sorted(scores, reverse=True)[:40]
        assert sorted((each.score for each in seen), reverse=True) == pytest.approx(best, abs=0)
        assert payload.metadata.total_results == 40


@pytest.mark.requirement("C056")
def test_a_boost_ranks_no_further_than_it_must(memory, monkeypatch):
    for number in range(60):
        memory.add(f"harbour {'and so on ' * number}", user_id="alice", session_id="today")
    asked, find = [], memory.repository.finder.find

    def counted(scope, search, *needs):
        asked.append(search.limit)
        return find(scope, search, *needs)

    monkeypatch.setattr(memory.repository.finder, "find", counted)
    config = BY_KEYWORDS.overridden(session_boost=2.0)
    RetrievalPolicy(memory, config).run(request("harbour"))
    assert asked == [16], "all are of the session"
    asked.clear()
    RetrievalPolicy(memory, config).run(request("harbour", session_id="tomorrow"))
    assert asked == [16, 256], "any other might be"


@pytest.mark.requirement("C056")
def test_the_best_of_a_session_rise_from_behind_hundreds_of_others():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        others = [
            {"content": f"harbour {number}", "user_id": "alice", "session_id": "other"}
            for number in range(500)
        ]
        memory.add_many(others)
        mine = memory.add("harbour far away", user_id="alice", session_id="today")
        config = RetrievalConfig(
            search_type="semantic", min_score=0, strategy="score_first", timeout=None
        )
        plain = memory.search("harbour", user_id="alice", search_type="semantic", limit=1000)
        place = [hit.id for hit in plain].index(mine.id)
        assert place >= 256
        assert plain[place].score * 2 > plain[0].score
        payload = RetrievalPolicy(memory, config.overridden(session_boost=2.0)).run(
            request("harbour")
        )
        assert ids_of(payload)[0] == str(mine.id)
        assert payload.memories[0].score == min(1.0, 2 * plain[place].score)
