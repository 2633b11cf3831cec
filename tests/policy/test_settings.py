import re
import warnings

import msgspec
import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError
from mnemic.policy import (
    AdminMemorySettings,
    InterleavingSettings,
    OutsideRecommendedWarning,
    Redaction,
    RetrievalConfig,
    RetrievalPolicy,
    RetrievalSettings,
)

DOCUMENTED = {
    "retrieval": {
        "topK": 7,
        "clipSentences": 1,
        "maxTokens": 900,
        "searchType": "keyword",
        "minScore": 0.1,
        "enableRedaction": True,
        "customRedactionPatterns": ["[A-Z]{2}-[0-9]{4}"],
    },
    "interleaving": {"strategy": "score_first", "ratio": 0.75},
}
TOML = """
[retrieval]
topK = 7
clipSentences = 1
maxTokens = 900
searchType = "keyword"
minScore = 0.1
enableRedaction = true
customRedactionPatterns = ["[A-Z]{2}-[0-9]{4}"]

[interleaving]
strategy = "score_first"
ratio = 0.75
"""


@pytest.mark.requirement("R288", "R289")
def test_the_documented_shape_is_read_from_dict_json_and_toml():
    settings = AdminMemorySettings.from_dict(DOCUMENTED)
    assert settings == AdminMemorySettings.from_json(msgspec.json.encode(DOCUMENTED))
    assert settings == AdminMemorySettings.from_toml(TOML)
    assert settings.retrieval.top_k == 7
    assert settings.retrieval.custom_redaction_patterns == ("[A-Z]{2}-[0-9]{4}",)
    assert settings.interleaving == InterleavingSettings(strategy="score_first", ratio=0.75)


@pytest.mark.requirement("R288", "R289")
def test_settings_override_the_configuration():
    config = RetrievalConfig(top_k=9, timeout=2, max_tokens=1000, strategy="alternate")
    active = AdminMemorySettings.from_dict(DOCUMENTED).applied_to(config)
    assert (active.top_k, active.clip_sentences, active.max_tokens) == (7, 1, 900)
    assert (active.search_type, active.min_score) == ("keyword", 0.1)
    assert (active.strategy, active.ratio, active.timeout) == ("score_first", 0.75, 2.0)
    assert active.redaction.enabled
    assert (config.top_k, config.strategy) == (9, "alternate"), "the given one is unchanged"


def test_settings_that_are_left_out_leave_the_configuration():
    config = RetrievalConfig(top_k=9, strategy="recency_first", ratio=0.4)
    assert AdminMemorySettings().applied_to(config) == config
    part = AdminMemorySettings.from_dict({"retrieval": {"maxTokens": 800}})
    assert part.applied_to(config) == RetrievalConfig(
        top_k=9, strategy="recency_first", ratio=0.4, max_tokens=800
    )


@pytest.mark.requirement("R289")
def test_a_strategy_of_the_settings_replaces_the_ratio_too():
    config = RetrievalConfig(strategy="score_first", ratio=0.7)
    settings = AdminMemorySettings(interleaving=InterleavingSettings(strategy="alternate"))
    active = settings.applied_to(config)
    assert (active.strategy, active.ratio) == ("alternate", None)
    of_ratio = AdminMemorySettings(interleaving=InterleavingSettings(ratio=0.2))
    assert of_ratio.applied_to(config).ratio == 0.2
    with pytest.raises(InvalidArgumentError, match=r"interleaving\.ratio must be 0\.5 or None"):
        of_ratio.applied_to(RetrievalConfig(strategy="alternate"))


@pytest.mark.requirement("R288", "C047")
def test_custom_patterns_are_added_to_the_defaults():
    settings = AdminMemorySettings.from_dict(
        {"retrieval": {"enableRedaction": True, "customRedactionPatterns": ["K-[0-9]+", "email"]}}
    )
    redaction = settings.applied_to(RetrievalConfig()).redaction
    assert redaction.enabled
    assert redaction.patterns == (*Redaction().patterns, "K-[0-9]+")


@pytest.mark.requirement("R288")
@pytest.mark.parametrize("is_enabled", [False, True, None])
def test_enable_redaction_turns_it_on_off_or_leaves_it(is_enabled):
    settings = AdminMemorySettings(retrieval=RetrievalSettings(enable_redaction=is_enabled))
    for given in (False, True):
        config = RetrievalConfig(redaction=Redaction(enabled=given, replacement="#"))
        active = settings.applied_to(config).redaction
        assert active.enabled is (given if is_enabled is None else is_enabled)
        assert active.replacement == "#"


@pytest.mark.requirement("C047")
@pytest.mark.parametrize("is_enabled", [False, True])
def test_a_bad_pattern_is_an_error_of_the_configuration(is_enabled):
    options = {"enable_redaction": is_enabled, "custom_redaction_patterns": ["fine", "(open"]}
    with pytest.raises(InvalidArgumentError, match=r"retrieval\.custom_redaction_patterns: "):
        RetrievalSettings(**options)
    with pytest.raises(
        InvalidArgumentError, match=r"retrieval\.custom_redaction_patterns\[0\] must"
    ):
        RetrievalSettings(custom_redaction_patterns=[5])


@pytest.mark.requirement("R288", "R289", "C052")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"retrieval": {"topK": 21}},
            "must be a whole number from 1 to 20 (recommended: 6 to 10) or None, got 21",
        ),
        (
            {"retrieval": {"topk": 8}},
            "RetrievalSettings has no field 'retrieval.topk'; did you mean 'retrieval.top_k'?",
        ),
        (
            {"interleaving": {"strategy": "alternate", "ratio": 0.6}},
            "interleaving.ratio must be 0.5 or None",
        ),
    ],
)
def test_errors_name_the_path_the_value_and_the_whole_range(settings, words):
    with pytest.raises(InvalidArgumentError) as raised:
        AdminMemorySettings.from_dict(settings)
    assert words in str(raised.value)


@pytest.mark.requirement("C052")
def test_settings_warn_once_and_their_use_does_not_warn_again():
    with pytest.warns(OutsideRecommendedWarning, match=r"retrieval\.top_k=20 is outside") as told:
        settings = AdminMemorySettings.from_dict({"retrieval": {"topK": 20, "clipSentences": 5}})
    assert len(told) == 1
    with warnings.catch_warnings(), Memory(":memory:", embedder=None) as memory:
        warnings.simplefilter("error")
        assert RetrievalPolicy(memory, settings=settings).config.top_k == 20


@pytest.mark.parametrize("camel_case", [False, True])
def test_settings_come_back_from_their_plain_form(camel_case):
    settings = AdminMemorySettings.from_dict(DOCUMENTED)
    assert AdminMemorySettings.from_dict(settings.to_dict(camel_case=camel_case)) == settings
    assert AdminMemorySettings.from_json(settings.to_json()) == settings
    assert AdminMemorySettings.from_dict(AdminMemorySettings().to_dict()) == AdminMemorySettings()


@pytest.mark.requirement("R302")
def test_a_policy_runs_by_its_settings_and_shows_the_active_configuration():
    with Memory(":memory:", embedder=None) as memory:
        policy = RetrievalPolicy(memory, settings=AdminMemorySettings.from_dict(DOCUMENTED))
        assert (policy.config.top_k, policy.config.strategy) == (7, "score_first")
        for wrong in ({"config": {}}, {"settings": DOCUMENTED}):
            with pytest.raises(InvalidArgumentError, match=re.escape("mnemic.policy.")):
                RetrievalPolicy(memory, **wrong)


@pytest.mark.requirement("R288")
def test_patterns_may_be_null_in_json():
    text = '{"retrieval": {"customRedactionPatterns": null, "topK": 7}}'
    settings = AdminMemorySettings.from_json(text)
    assert settings.retrieval == RetrievalSettings(top_k=7)
