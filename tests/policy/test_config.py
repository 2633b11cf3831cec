import pickle
import re
import warnings

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import InvalidArgumentError
from mnemic.policy import (
    INTERLEAVED,
    OutsideRecommendedWarning,
    PromptBlock,
    Redaction,
    RetrievalConfig,
)


@pytest.mark.requirement("R283", "R284", "R285", "R286", "C052", "C051", "C056")
def test_the_interleaved_preset_is_the_documented_one():
    config = INTERLEAVED
    assert (config.top_k, config.clip_sentences, config.max_tokens) == (8, 2, 1500)
    assert (config.search_type, config.min_score) == ("hybrid", "auto")
    assert (config.timeout, config.max_query_length, config.cache_ttl) == (0.5, 4000, 60.0)
    assert (config.same_session_only, config.session_boost) == (False, 1.0)
    assert (config.strategy, config.ratio, config.near_duplicates) == ("alternate", None, None)
    assert config.redaction == Redaction()
    assert not config.redaction.enabled
    assert config.block == PromptBlock(score_label="confidence", time_zone="UTC")


@pytest.mark.requirement("C211")
def test_the_default_fills_the_tokens_best_first():
    config = RetrievalConfig()
    assert (config.top_k, config.clip_sentences, config.strategy) == (None, None, "score_first")
    assert config.block == PromptBlock()
    others = ("top_k", "clip_sentences", "strategy", "block")
    assert config == INTERLEAVED.overridden(**{name: getattr(config, name) for name in others})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"search_type": "hybird"},
            "must be one of hybrid, semantic, keyword, got 'hybird'; did you mean 'hybrid'",
        ),
        ({"same_session_only": 1}, "same_session_only must be True or False, got 1"),
        ({"redaction": True}, "redaction must be a Redaction, got True"),
        ({"block": {}}, "block must be a PromptBlock, got a dict of 0 items"),
        ({"search_type": ["hybrid"]}, "search_type must be one of"),
    ],
)
def test_a_wrong_word_or_type_is_refused(options, words):
    with pytest.raises(InvalidArgumentError, match=re.escape(words)):
        RetrievalConfig(**options)


def test_an_unknown_option_of_the_constructor_names_the_nearest():
    with pytest.raises(InvalidArgumentError, match=r"'top_kk'.*did you mean 'top_k'"):
        RetrievalConfig(top_kk=8)


@pytest.mark.requirement("C038")
def test_alternate_goes_with_no_ratio_but_a_half():
    assert RetrievalConfig(strategy="alternate", ratio=0.5).ratio == 0.5
    assert RetrievalConfig(strategy="score_first", ratio=0.7).ratio == 0.7
    with pytest.raises(InvalidArgumentError, match=r"ratio must be 0\.5 or None with the strategy"):
        RetrievalConfig(strategy="alternate", ratio=0.7)


FORMS = {
    "snake": {"top_k": 9, "search_type": "keyword", "min_score": 0.3, "session_boost": 1.5},
    "camel": {"topK": 9, "searchType": "keyword", "minScore": 0.3, "sessionBoost": 1.5},
}
GIVEN = RetrievalConfig(top_k=9, search_type="keyword", min_score=0.3, session_boost=1.5)


@pytest.mark.parametrize("form", FORMS)
def test_dicts_json_and_toml_give_the_same_configuration(form):
    options = FORMS[form]
    json = msgspec.json.encode(options)
    lines = (f"{name} = {msgspec.json.encode(value).decode()}" for name, value in options.items())
    toml = "\n".join(lines)
    assert RetrievalConfig.from_dict(options) == GIVEN
    assert RetrievalConfig.from_json(json) == RetrievalConfig.from_json(json.decode()) == GIVEN
    assert RetrievalConfig.from_toml(toml) == RetrievalConfig.from_toml(toml.encode()) == GIVEN


@pytest.mark.requirement("R283", "R284", "R285", "R286", "R287")
def test_the_documented_default_configuration_is_read():
    text = """{
      "topK": 8, "clipSentences": 2, "maxTokens": 1500, "searchType": "hybrid", "minScore": 0.3
    }"""
    read = RetrievalConfig.from_json(text)
    others = {"strategy": "alternate", "block": INTERLEAVED.block}
    assert read.overridden(**others) == INTERLEAVED.overridden(min_score=0.3)


@pytest.mark.parametrize("camel_case", [False, True])
def test_a_configuration_comes_back_from_its_plain_form(camel_case):
    config = RetrievalConfig(
        redaction=Redaction(enabled=True, patterns=("ssn", "[A-Z]{3}-[0-9]+"), replacement="***"),
        block=PromptBlock(group_by_type=False, preamble=True),
        strategy="recency_first",
        ratio=0.25,
        timeout=None,
        same_session_only=True,
    )
    plain = config.to_dict(camel_case=camel_case)
    assert RetrievalConfig.from_dict(plain) == config
    assert RetrievalConfig.from_json(msgspec.json.encode(plain)) == config
    assert RetrievalConfig.from_json(config.to_json()) == config
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - its own


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"topk": 8},
            "RetrievalConfig has no field 'topk'; did you mean 'top_k'? There are top_k",
        ),
        ({"topK": 8, "top_k": 8}, "top_k is given twice, as top_k and as topK"),
        ({"minScore": "high"}, "min_score must be a number from 0 to 1 or 'auto', got 'high'"),
        (
            {"block": {"group_by": True}},
            "PromptBlock has no field 'block.group_by'; did you mean 'block.group_by_type'?",
        ),
        ({"block": {"preamble": "yes"}}, "block.preamble: Expected bool, got str"),
        ({"redaction": 5}, "redaction must be a mapping with fields of Redaction, got 5"),
        ({3: 5}, "RetrievalConfig has no field 3"),
        (
            [],
            "must be a mapping with fields of RetrievalConfig, got a list of 0 items",
        ),
    ],
)
def test_errors_of_a_dict_name_the_path(options, words):
    with pytest.raises(InvalidArgumentError) as raised:
        RetrievalConfig.from_dict(options)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (RetrievalConfig.from_json, "{", "the text is no JSON: "),
        (RetrievalConfig.from_json, b"\xff", "JSON must be UTF-8; it is not at byte 0"),
        (RetrievalConfig.from_json, 5, "JSON must be a str or bytes, got 5"),
        (RetrievalConfig.from_json, '"\ud800"', "the text is no JSON: "),
        (RetrievalConfig.from_json, "[" * 100_000, "the text is no JSON: "),
        (RetrievalConfig.from_toml, "topK = ", "the text is no TOML: "),
        (RetrievalConfig.from_toml, None, "TOML must be a str or bytes, got None"),
    ],
)
def test_a_text_of_another_format_is_refused(read, text, words):
    with pytest.raises(InvalidArgumentError, match=re.escape(words)):
        read(text)


@given(
    st.dictionaries(
        st.text(max_size=12),
        st.none() | st.integers() | st.floats() | st.text(max_size=9),
        max_size=4,
    )
)
def test_any_dict_is_read_or_refused_with_the_typed_error(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRecommendedWarning)
        try:
            config = RetrievalConfig.from_dict(options)
        except InvalidArgumentError:
            return
        assert RetrievalConfig.from_dict(config.to_dict()) == config
