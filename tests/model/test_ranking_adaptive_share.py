"""The share of similarity that grows with the mean length of a user's memories."""

import msgspec
import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError
from mnemic.model import HYBRID, AdaptiveShare
from tests.support.embedders import WordEmbedder
from tests.support.exact_source import ExactSource

LONG = "the harbour boat sails at noon with ninety barrels of red wine " * 4
ADAPTIVE = AdaptiveShare(short=0.1, long=0.9, length=4)
RANKING = msgspec.structs.replace(HYBRID, similarity=ADAPTIVE, covered_only=False, full_words=0)


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as made:
        yield made


def share_of(memory, **options):
    rare = "zebra"
    return memory.search(rare, ranking=RANKING, **options).share


def expected(*lengths):
    mean = sum(lengths) / len(lengths)
    return pytest.approx(0.1 + 0.8 * mean**3 / (mean**3 + 64))


def test_the_share_follows_the_mean_number_of_words(memory):
    memory.add("a boat")
    assert share_of(memory) == expected(2)
    longer = memory.add("a boat in the harbour of Oslo")
    assert share_of(memory) == expected(2, 7)
    memory.delete(longer.id)
    assert share_of(memory) == expected(2)


def test_it_is_halfway_at_the_length_and_low_without_memories(memory):
    assert share_of(memory) == 0.1
    memory.add("a boat at noon")
    assert share_of(memory) == pytest.approx(0.5)


@pytest.mark.parametrize("length", [5e-324, 1e-150, 1e300])
def test_memories_without_words_have_the_share_of_short_ones_at_any_length(memory, length):
    memory.add("…")
    ranking = msgspec.structs.replace(RANKING, similarity=AdaptiveShare(0.1, 0.9, length))
    found = memory.search("boat", ranking=ranking)
    assert (found.share, len(found)) == (0.1, 1)


def test_every_hit_has_it_and_scores_by_it(memory):
    memory.add_many(["a boat", "harbour boat in winter", LONG])
    found = memory.search("boat harbour", ranking=RANKING, explain=True)
    fixed = msgspec.structs.replace(RANKING, similarity=found.share)
    same = memory.search("boat harbour", ranking=fixed, explain=True)
    assert {hit.components["share"] for hit in found} == {found.share}
    assert [(hit.id, hit.score, hit.components) for hit in found] == [
        (hit.id, hit.score, hit.components) for hit in same
    ]
    assert same.share == found.share == found[:1].share


def test_only_memories_of_the_user_count(memory):
    memory.add("a boat", user_id="ana")
    alone = memory.search("boat", ranking=RANKING, user_id="ana")
    memory.add_many([LONG, LONG + "more"], user_id="ben")
    memory.add(LONG + "of nobody")
    beside = memory.search("boat", ranking=RANKING, user_id="ana")
    assert beside.share == alone.share == expected(2)
    assert [hit.score for hit in beside] == [hit.score for hit in alone]
    assert share_of(memory, all_users=True) > beside.share


def test_filters_sessions_and_projects_do_not_change_it(memory):
    memory.scoped(project_id="p").add("a boat", session_id="s", tags=["x"])
    memory.add("a boat in the harbour of Oslo")
    whole = share_of(memory)
    assert whole == expected(2, 7)
    assert share_of(memory, session_id="s") == whole
    assert share_of(memory.scoped(project_id="p")) == whole
    assert share_of(memory, filters={"tags": {"contains": "x"}}) == whole


def test_a_candidate_source_has_the_same_share(memory):
    texts = [f"boat {number} {'harbour ' * (number % 9)}" for number in range(700)]
    answers = []
    with Memory(
        ":memory:", embedder=WordEmbedder(), make_source=ExactSource, exact_limit=0
    ) as other:
        for opened in (memory, other):
            opened.add_many(texts)
            found = opened.search("boat harbour 7", ranking=RANKING, limit=5)
            answers.append((found.share, [(hit.content, hit.score) for hit in found]))
            assert found.approximate is (opened is other)
    assert answers[0] == answers[1]


def test_the_share_of_other_searches_is_theirs(memory):
    entry = memory.add("a boat")
    assert memory.search("boat", search_type="keyword").share == 0
    assert memory.search("boat", search_type="semantic").share == 1
    assert memory.similar(entry.id).share == 1
    assert memory.recent().share is None
    assert memory.important().share is None


def test_a_memory_without_an_embedder_has_none():
    with Memory(":memory:", embedder=None) as memory:
        memory.add(LONG)
        assert memory.search("boat").share == 0


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("short", -0.1),
        ("short", 1.1),
        ("long", None),
        ("long", "1"),
        ("length", 0),
        ("length", float("inf")),
        ("length", float("nan")),
        ("length", True),
    ],
)
def test_a_share_out_of_range_is_refused(field, given):
    with pytest.raises(InvalidArgumentError, match=f"{field} must be a.* number"):
        AdaptiveShare(**{field: given})


def test_an_adaptive_share_is_neither_a_search_by_keywords_nor_one_by_meaning():
    assert RANKING.has_similarity
    assert RANKING.has_keywords
    assert not msgspec.structs.replace(RANKING, similarity=0.0).has_similarity
    assert not msgspec.structs.replace(RANKING, similarity=1.0).has_keywords


def test_common_words_have_the_limit_of_long_texts_where_nothing_has_a_session(memory):
    memory.add_many([f"the boat number{number} sails" for number in range(50)])
    common, rare = (
        memory.search(text, ranking=RANKING).share for text in ("the boat sails", "number7 number8")
    )
    assert (common, rare) == (pytest.approx(0.9), expected(4))
    assert memory.search("the boat sails", ranking=RANKING, user_id="nobody").share == 0.1


def test_between_both_the_share_rises_as_the_words_become_common(memory):
    memory.add_many([f"the boat number{number} sails" for number in range(50)])
    some = "the boat sails number7 number8"
    texts = ("number7", "boat number7", some, "the boat sails number7", "the boat")
    shares = [memory.search(text, ranking=RANKING).share for text in texts]
    assert shares == sorted(shares)
    assert len(set(shares)) > 2


def test_one_session_among_the_memories_keeps_the_share_by_length(memory):
    memory.add_many([f"the boat number{number} sails" for number in range(50)])
    memory.add("the red boat sails", session_id="s", tags=["chat"])
    assert memory.search("the boat sails", ranking=RANKING).share == expected(4)
    only_notes = {"NOT": {"tags": {"contains": "chat"}}}
    alone = memory.search("the boat sails", ranking=RANKING, filters=only_notes)
    assert alone.share == pytest.approx(0.9)
