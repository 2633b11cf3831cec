import asyncio
import pickle
from uuid import uuid4

import pytest

from mnemic import errors
from mnemic.compat import AsyncMemoryRetriever, AsyncRetrievalService, ContextWindow
from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.licensing import (
    AGENT_FEATURES,
    LONG_TERM,
    RECALL_FEATURES,
    SEMANTIC_RETRIEVAL,
    DocumentedLicenses,
    LicenseTier,
    required_tier,
)
from mnemic.memory import Memory
from mnemic.model import MemoryEntryUpdate, MemoryQuery
from tests.support import doors
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry

MEGABYTE = 1024 * 1024


def policy(tier):
    return None if tier is None else DocumentedLicenses(tier)


def run(scenario, license, path=":memory:"):  # noqa: A002 - the field's name everywhere
    return doors.run(scenario, path, license=policy(license))


def test_a_tier_includes_what_lower_ones_do():
    tiers = list(LicenseTier)
    for key in (*AGENT_FEATURES, *RECALL_FEATURES):
        having = [tier for tier in tiers if DocumentedLicenses(tier).has_feature(key)]
        assert having == tiers[required_tier(key) :]
        assert required_tier(f"FeatureFlags.{key}") == required_tier(key)


@pytest.mark.parametrize("given", ["teams", LicenseTier.TEAMS, DocumentedLicenses, object()])
def test_a_license_is_a_policy(given):
    with pytest.raises(errors.InvalidArgumentError, match="DocumentedLicenses"):
        Memory(":memory:", embedder=None, license=given)


@pytest.mark.parametrize("quota", [5, "5", (5, None)])
def test_a_policy_whose_quota_is_none_of_ours_is_refused_before_anything_is_stored(quota):
    class Host:
        def require(self, *needs):
            """Allow everything."""

    Host.quota = quota
    with pytest.raises(errors.InvalidArgumentError, match="Quota"):
        Memory(":memory:", embedder=None, license=Host())


def test_without_a_policy_nothing_is_checked_and_no_limit_is_set():
    async def scenario(memory):
        assert memory.license is None
        await memory.store(entry("tea " * 1000))
        assert await memory.search_semantic("tea")
        stats = await memory.get_stats()
        assert (stats.storage_bytes_limit, stats.storage_percent_used) == (None, 0)

    run(scenario, None)


def test_a_quota_without_a_policy_names_no_tier():
    with Memory(":memory:", embedder=None, quota=10) as memory:
        memory.add("x" * 9)
        with pytest.raises(errors.StorageQuotaExceededError) as raised:
            memory.add("xx")
        assert str(raised.value) == (
            "Storage quota exceeded. Current: 9 bytes, Limit: 10 bytes, To be added: 2 bytes"
        )
        assert raised.value.license_tier is None
        assert memory.stats().storage_bytes_limit == 10
    for wrong in (-1, "10", 1.5, True):
        with pytest.raises(errors.InvalidArgumentError, match="quota"):
            Memory(":memory:", embedder=None, quota=wrong)


@pytest.mark.parametrize(("own", "limit", "tier"), [(10, 10, None), (MEGABYTE * 200, 100, "Wr")])
def test_of_two_quotas_the_smaller_one_holds(own, limit, tier):
    license = DocumentedLicenses(LicenseTier.WRITER_PRO)  # noqa: A001 - the field's name everywhere
    with Memory(":memory:", embedder=None, license=license, quota=own) as memory:
        quota = memory.repository.shared.limits.quotas.agent
    assert quota.limit == (limit if tier is None else limit * MEGABYTE)
    assert (quota.tier or "")[:2] == (tier or "")


def test_a_host_may_pass_a_policy_of_its_own():
    class Closed:
        quota = None

        def require(self, *needs):
            raise errors.LicenseRestrictionError("closed today", needs[0].key, "open", "closed")

    closed = Memory(":memory:", embedder=None, license=Closed())
    with closed, pytest.raises(errors.LicenseRestrictionError, match="closed today"):
        closed.add("x")


def test_features_are_known_by_their_keys():
    with pytest.raises(errors.InvalidArgumentError, match="unknown"):
        required_tier("Agents.Memory.Everything")


@pytest.mark.requirement("R015", "R016", "R017")
def test_storage_limits_are_those_of_the_documents():
    limits = [DocumentedLicenses(tier).storage_limit for tier in LicenseTier]
    assert limits == [0, 100 * MEGABYTE, 1024 * MEGABYTE, None]


@pytest.mark.requirement("R013", "R014", "R019")
def test_core_is_refused_every_operation_and_told_what_to_do():
    async def scenario(memory):
        for call in (
            memory.store(entry("x")),
            memory.store_batch([entry("x")]),
            memory.retrieve(uuid4()),
            memory.search_by_filter({}),
            memory.update(uuid4(), MemoryEntryUpdate(importance=1.0)),
            memory.forget(uuid4()),
            memory.restore(uuid4()),
            memory.purge_expired(),
            memory.count(),
            memory.get_stats(),
        ):
            with pytest.raises(errors.LicenseRestrictionError) as raised:
                await call
            assert str(raised.value) == "Upgrade to WriterPro for persistent memory"
            assert raised.value.feature_key == LONG_TERM
            assert raised.value.required_tier == "WriterPro"
            assert raised.value.current_tier == "Core"

    run(scenario, LicenseTier.CORE)


def every_call(memory, service, retriever):
    """Return a call of every kind that a license may refuse, by name."""
    by_meaning = MemoryQuery.semantic("x")
    near_context = MemoryQuery(filters={}, context_boost="x")
    return {
        "store": lambda: memory.store(entry("x")),
        "count": memory.count,
        "search_semantic": lambda: memory.search_semantic("x"),
        "retrieve by filter": lambda: service.retrieve(MemoryQuery.filtered({})),
        "retrieve by meaning": lambda: service.retrieve(by_meaning),
        "retrieve near a context": lambda: service.retrieve(near_context),
        "find_similar": lambda: service.find_similar(uuid4(), strict=False),
        "expand_query": lambda: service.expand_query("x"),
        "suggest_queries": lambda: service.suggest_queries("x"),
        "recall": lambda: retriever.recall("x", user_id="u"),
        "compaction": lambda: anything(
            lambda: ContextWindow(
                100,
                compaction_strategy="selective",
                license=memory.license,
                clock=lambda: NOON,
            )
        ),
    }


async def anything(call):
    return call()


def test_the_tier_that_a_message_names_allows_the_call():
    async def refusal(name, tier):
        async with AsyncLongTermMemory(
            ":memory:", agent_id="aide", embedder=WordEmbedder(), license=policy(tier)
        ) as memory:
            calls = every_call(memory, AsyncRetrievalService(memory), AsyncMemoryRetriever(memory))
            try:
                await calls[name]()
            except errors.LicenseRestrictionError as error:
                return error
            return None

    async def main():
        async with AsyncLongTermMemory(":memory:", agent_id="aide", embedder=None) as memory:
            names = list(every_call(memory, None, None))
        for name in names:
            for tier in LicenseTier:
                error = await refusal(name, tier)
                if error is None:
                    continue
                (named,) = [one for one in LicenseTier if one.label == error.required_tier]
                assert error.required_tier in str(error), name
                assert named > tier, name
                assert await refusal(name, named) is None, name
                assert isinstance(
                    await refusal(name, LicenseTier(named.number - 1)), type(error)
                ), name

    asyncio.run(main())


@pytest.mark.requirement("R018", "R137")
def test_core_is_told_at_once_which_tier_has_searches_by_meaning():
    async def scenario(memory):
        service = AsyncRetrievalService(memory)
        for call, message in (
            (memory.search_semantic("x"), "Semantic search requires Teams tier or higher"),
            (
                service.retrieve(MemoryQuery.semantic("x")),
                "Upgrade to Teams for intelligent memory retrieval",
            ),
        ):
            with pytest.raises(errors.LicenseRestrictionError) as raised:
                await call
            assert str(raised.value) == message
            assert raised.value.required_tier == "Teams"
            assert raised.value.current_tier == "Core"

    run(scenario, LicenseTier.CORE)


@pytest.mark.requirement("R012", "R018", "R019", "R109")
def test_searching_by_meaning_needs_teams_and_the_rest_writer_pro():
    async def scenario(memory):
        kept = entry("x")
        await memory.store(kept)
        assert await memory.retrieve(kept.id) == kept
        assert await memory.search_by_filter({}) == [kept]
        with pytest.raises(errors.LicenseException) as raised:
            await memory.search_semantic("x")
        assert str(raised.value) == "Semantic search requires Teams tier or higher"
        assert raised.value.feature_key == SEMANTIC_RETRIEVAL

    run(scenario, LicenseTier.WRITER_PRO)

    async def with_teams(memory):
        await memory.store(entry("x"))
        assert len(await memory.search_semantic("x", min_similarity=0)) == 1

    run(with_teams, LicenseTier.TEAMS)
    with Memory(
        ":memory:", embedder=WordEmbedder(), license=DocumentedLicenses(LicenseTier.WRITER_PRO)
    ) as memory:
        memory.add("x")
        with pytest.raises(PermissionError):
            memory.search("x")
    assert errors.FeatureNotLicensedException is errors.LicenseRestrictionError


def large(size):
    return entry("ø" * (size // 2) + "x" * (size % 2))


@pytest.mark.requirement("R026", "R070", "R119", "R127")
def test_a_store_at_ninety_nine_percent_is_refused_a_large_entry(tmp_path):
    async def scenario(memory):
        limit = 100 * MEGABYTE
        await memory.store_batch([large(9 * MEGABYTE + 900 * 1024) for _ in range(10)])
        used = (await memory.get_stats()).storage_bytes_used
        assert used == 10 * (9 * MEGABYTE + 900 * 1024)
        assert 98 < (await memory.get_stats()).storage_percent_used < 100
        with pytest.raises(errors.StorageQuotaExceededError) as raised:
            await memory.store(large(2 * MEGABYTE))
        error = raised.value
        assert (error.current_usage, error.limit, error.license_tier) == (used, limit, "WriterPro")
        assert str(error) == (
            f"Storage quota exceeded. Current: {used} bytes, Limit: {limit} bytes (WriterPro tier)"
        )
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own bytes
        assert (again.current_usage, again.limit, str(again)) == (used, limit, str(error))
        assert await memory.count() == 10
        await memory.store(large(limit - used))
        assert (await memory.get_stats()).storage_percent_used == 100
        with pytest.raises(errors.StorageQuotaExceededError):
            await memory.store(large(1))

    run(scenario, LicenseTier.WRITER_PRO, tmp_path / "a.db")


@pytest.fixture
def small_quota(monkeypatch):
    """A hundred bytes for everybody."""
    monkeypatch.setattr(DocumentedLicenses, "storage_limit", property(lambda _: 100))


@pytest.mark.requirement("C082")
@pytest.mark.usefixtures("small_quota")
def test_a_hundred_stores_at_once_never_pass_the_quota_together(tmp_path):
    async def scenario(memory):
        calls = [memory.store(large(10)) for _ in range(100)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        refused = [one for one in outcomes if isinstance(one, errors.StorageQuotaExceededError)]
        assert len(refused) == 90
        assert await memory.count() == 10
        assert (await memory.get_stats()).storage_bytes_used == 100

    run(scenario, LicenseTier.TEAMS, tmp_path / "a.db")
