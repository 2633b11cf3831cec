"""Finding: pages, totals, similarity, floors and hints."""

import pickle
import sys

import msgspec
import pytest

import mnemic
from mnemic import Memory, Ranking
from mnemic.errors import InvalidArgumentError, MnemicError
from mnemic.model import HYBRID
from tests.support.clock import NOON
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.exact_source import ExactSource
from tests.support.failing_embedders import FailingEmbedder

TEXTS = [
    f"{color} {thing}" for color in ("red", "blue", "green") for thing in ("tea", "boat", "cup")
]


def stocked(texts=TEXTS, **options):
    memory = opened(clock=lambda: NOON, **options)
    memory.add_many(list(texts))
    return memory


def contents(found):
    return [hit.content for hit in found]


# Pages and totals


def test_pages_join_through_a_candidate_source():
    with stocked(TEXTS * 5, make_source=ExactSource, exact_limit=0) as memory:
        whole = memory.search("red tea", limit=30)
        pages = [memory.search("red tea", limit=10, offset=at) for at in (0, 10, 20)]
        assert [hit.id for page in pages for hit in page] == [hit.id for hit in whole]


def test_other_verbs_page_too():
    with stocked() as memory:
        newest = memory.recent(limit=9)
        assert memory.recent(limit=4, offset=3)[0].id == newest[3].id
        assert len(memory.important(limit=2, offset=8)) == 1
        like = memory.similar(newest[0].id, limit=3, offset=2)
        whole = memory.similar(newest[0].id, limit=5)
        assert [hit.id for hit in like] == [hit.id for hit in whole[2:]]


# Similarity


class SignedEmbedder(WordEmbedder):
    """Opposite vectors for texts that begin with "not"."""

    def embed(self, texts):
        signs = [-1 if text.startswith("not") else 1 for text in texts]
        vectors = super().embed([text.removeprefix("not ") for text in texts])
        return vectors * [[sign] for sign in signs]


def test_similarity_is_not_clamped_and_absent_where_nothing_is_compared():
    with stocked(["tea", "not tea"], embedder=SignedEmbedder()) as memory:
        found = {hit.content: hit for hit in memory.search("tea", search_type="semantic")}
        assert found["tea"].similarity == pytest.approx(1.0)
        assert found["not tea"].similarity == pytest.approx(-1.0)
        assert found["not tea"].score == found["not tea"].components["similarity"] == 0.0
        assert contents(memory.search("tea", ranking=Ranking(min_similarity=-0.5))) == ["tea"]
        by_words = memory.search("tea", search_type="keyword")
        assert [hit.similarity for hit in by_words] == [None, None]


def test_a_memory_that_shall_have_no_vector_has_no_similarity():
    with stocked(["tea"]) as memory:
        bare = memory.add({"content": "", "embed": [], "metadata": {"about": "coffee"}})
        found = memory.search("coffee", search_type="semantic", explain=True)
        assert [hit.similarity is None for hit in found] == [hit.id == bare.id for hit in found]
        assert "similarity" not in found[-1].components


def test_a_memory_without_a_vector_has_no_similarity_and_reaches_no_floor():

    embedder = FailingEmbedder()
    with opened(embedder=embedder) as memory:
        memory.add("red tea")
        embedder.is_down = True
        memory.add_many(["blue tea"], on_embed_error="pending")
        assert memory.search("tea").degraded
        near = msgspec.structs.replace(HYBRID, min_similarity=0.9)
        hits = memory.search("tea", ranking=near)  # answered by keywords: no floor applies
        assert hits.degraded
        assert len(hits) == 2


# Reasons


def test_reasons_come_with_explain_alone():
    with stocked() as memory:
        assert memory.search("red tea")[0].why is None
        why = memory.search("red tea", explain=True)[0].why
        assert isinstance(why, mnemic.model.Why)
        assert [(word.query, word.memory) for word in why.words] == [("red", "red"), ("tea", "tea")]


def test_words_of_sensitive_memories_are_hidden_in_reprs_and_tables():
    with opened() as memory:
        memory.add("the secret harbour", sensitive=True, speaker="Ana")
        found = memory.search("where is the harbour?", explain=True)
        hit = found[0]
        assert hit.why.words[0].memory == "harbour"
        for shown in (repr(hit), repr(hit.why), repr(hit.why.words), found.table(), str(found)):
            assert "harbour" not in shown
            assert "Ana" not in shown


def test_results_with_reasons_survive_a_pickle():
    with stocked() as memory:
        hit = memory.search("red tea", explain=True)[0]
        assert pickle.loads(pickle.dumps(hit)) == hit  # noqa: S301 - made here
        context = memory.context("red tea")
        assert pickle.loads(pickle.dumps(context)).hint is None  # noqa: S301 - made here


# Floors


def test_a_floor_of_scores_excludes_what_is_below_it():
    with stocked() as memory:
        whole = memory.search("red tea", limit=100)
        floor = whole[2].score
        assert list(memory.search("red tea", limit=100, min_score=floor)) == [
            hit for hit in whole if hit.score >= floor
        ]
        assert list(memory.search("red tea", limit=100, min_score=0)) == list(whole)


NONSENSE = ("xyzzy", "qwxz vbrk", "zzz")


@pytest.mark.parametrize("floors", [
    {"similarity_floor": 0.25},
    {"score_floors": {"hybrid": 0.4, "semantic": 0.3}},
    {},
])  # fmt: skip
@pytest.mark.parametrize("count", [3, 9, 200])
def test_nonsense_finds_nothing_and_good_answers_stay(floors, count):
    embedder = WordEmbedder(dimensions=4096)
    vars(embedder).update(floors)
    things = [f"{TEXTS[at % 9]} number{at}" for at in range(count)]
    with stocked(things, embedder=embedder) as memory:
        for nonsense in NONSENSE:
            assert not memory.search(nonsense, min_score="auto")
            assert memory.search(nonsense)
            assert memory.context(nonsense) == ""
            assert memory.context(nonsense, min_score=None) != ""
        for query in ("red tea", "where is the blue boat?", "number1"):
            everything = memory.search(query, limit=count)
            assert list(memory.search(query, limit=count, min_score="auto")) == list(everything)
            assert "red tea" in memory.context("red tea")


def test_without_an_embedder_one_matched_word_is_needed():
    with stocked(embedder=None) as memory:
        assert not memory.search("xyzzy", min_score="auto")
        assert contents(memory.search("red", min_score="auto"))[0].startswith("red")
        assert memory.context("xyzzy") == ""


def test_the_floor_does_not_depend_on_limit_offset_or_weights():
    with stocked() as memory:
        weights = {"relevance": 0.5, "importance": 0.5}
        for given in ({"limit": 1}, {"limit": 3, "offset": 2}, {"ranking": weights}):
            assert not memory.search("xyzzy", min_score="auto", **given)
            assert memory.search("red tea", min_score="auto", **given)


def test_the_floor_looks_at_the_selected_memories_alone():
    with stocked() as memory:
        memory.add("xyzzy is a word of another user", user_id="other")
        memory.scoped(project_id="p").add("xyzzy is a word of a project")
        assert memory.search("xyzzy", min_score="auto")
        only = {"content": {"contains": "red"}}
        assert not memory.search("xyzzy", min_score="auto", filters=only)
        assert not memory.scoped(user_id="nobody").search("xyzzy", min_score="auto")


def test_the_floor_holds_through_a_candidate_source():
    embedder = WordEmbedder(dimensions=4096)
    embedder.similarity_floor = 0.25
    with stocked(TEXTS * 30, embedder=embedder, make_source=ExactSource, exact_limit=0) as memory:
        assert not memory.search("xyzzy", min_score="auto")
        assert memory.search("red tea", min_score="auto").approximate


@pytest.mark.parametrize("floors", [
    {"hybrid": "high"}, {"keyword": 0.3}, {"hybrid": 1.0}, {"hybrid": True}, 0.3, [("hybrid", 0.3)],
])  # fmt: skip
def test_floors_of_an_embedder_are_checked(floors):
    embedder = WordEmbedder()
    embedder.score_floors = floors
    with pytest.raises(InvalidArgumentError, match="score_floors"):
        Memory(":memory:", embedder=embedder)


WRONG = [
    ({"min_score": 1.5}, "min_score must be a number from 0 to 1"),
    ({"min_score": -0.1}, "min_score"),
    ({"min_score": float("nan")}, "min_score"),
    ({"min_score": "high"}, "min_score"),
    ({"min_score": True}, "min_score"),
    ({"ranking": [1.0]}, "must be a mnemic.Ranking, mnemic.Weights or a dict of weights, got"),
    ({"ranking": {"relevances": 1}}, "no weight 'relevances'"),
    ({"ranking": Ranking(), "search_type": "semantic"}, "a Ranking takes the place of search_type"),
    ({"offset": -1}, "offset must be at least 0"),
    ({"offset": 1.0}, "offset must be an int"),
    ({"offset": 1 << 70}, "offset"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_wrong_arguments_are_refused_by_name(given, message):
    with stocked() as memory, pytest.raises(MnemicError, match=message):
        memory.search("red", **given)


def test_a_ranking_may_have_a_least_cosine():
    with stocked() as memory:
        whole = memory.search("red", limit=100)
        near = msgspec.structs.replace(HYBRID, min_similarity=0.5)
        found = memory.search("red", limit=100, ranking=near)
        assert list(found) == [hit for hit in whole if hit.similarity >= 0.5]
        assert 0 < len(found) < len(whole)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_similarity": 2}, "min_similarity must be a cosine from -1 to 1, or None, got 2"),
        ({"min_similarity": "auto"}, "min_similarity must be a cosine"),
        ({"min_similarity": True}, "min_similarity must be a cosine"),
        ({"min_similarity": float("nan")}, "min_similarity must be a cosine"),
        ({"min_similarity": 0.3, "similarity": 0.0}, "compares no vectors; use min_score"),
    ],
)
def test_a_least_cosine_that_cannot_be_is_refused(given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Ranking(**given)
    if "similarity" not in given:
        with stocked() as memory, pytest.raises(InvalidArgumentError, match=message):
            memory.similar(memory.recent(limit=1)[0].id, **given)


def test_very_large_pages_have_all_or_nothing():
    with stocked() as memory:
        assert not memory.search("red", offset=(1 << 63) - 1, limit=(1 << 63) - 1)
        for limit in (sys.maxsize, 2**64, 10**30):
            assert len(memory.search("red", limit=limit)) == len(TEXTS)


# Hints


def test_hints_count_the_users_of_the_project_and_session_alone():
    with stocked(()) as memory:
        memory.scoped(project_id="home").add("red tea", user_id="ana", session_id="first")
        assert memory.scoped(project_id="home").search("tea").hint is not None
        assert memory.search("tea", session_id="first").hint is not None
        assert memory.scoped(project_id="work").search("tea").hint is None
        assert memory.scoped(project_id="home").search("tea", session_id="second").hint is None
        assert memory.scoped(project_id="work").context("tea").hint is None


def test_hints_end_where_the_agent_has_no_memory_of_a_user(tmp_path):
    path = tmp_path / "shared.db"
    with opened(path, "one") as memory:
        memory.add("red tea", user_id="ana")
    with opened(path, "two") as memory:
        assert memory.search("tea").hint is None
