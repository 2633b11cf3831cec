"""Options of the HyDE engine: defaults, ranges, readers, updates, and the hidden key."""

import copy
import json
import pickle
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import InvalidArgumentError, MnemicError
from mnemic.hyde import HydeConfig, IgnoredOptionWarning
from mnemic.hyde.config import RANGES
from mnemic.model import LinkType

LIMITS = [
    ("retrieval_top_k", 1, 100, 0, 101),
    ("retrieval_hop_depth", 0, 3, -1, 4),
    ("retrieval_hypothesis_count", 1, 10, 0, 11),
    ("injection_token_budget", 0, 2**53, -1, 2**54),
    ("timeout", 5e-324, 60, 0, 60.001),
    ("min_similarity", -1, 1, -1.01, 1.01),
    ("drop_off", 0, 1, -0.01, 1.01),
    ("candidates_per_hypothesis", 1, 100, 0, 101),
    ("max_neighbours", 0, 100, -1, 101),
    ("max_versions", 0, 20, -1, 21),
    ("max_window_characters", 200, 200_000, 199, 200_001),
    ("failure_backoff", 0, 3600, -1, 3601),
]


def test_every_numeric_option_is_in_the_table_of_limits():
    assert {row[0] for row in LIMITS} == set(RANGES)


@pytest.mark.requirement("C118", "T076")
@pytest.mark.parametrize(("name", "smallest", "largest", "below", "above"), LIMITS)
def test_ranges_hold_at_both_ends(name, smallest, largest, below, above):
    for value in (smallest, largest):
        assert getattr(HydeConfig(**{name: value}), name) == value
    for value in (below, above, float("nan"), float("inf"), True, "1", [1]):
        with pytest.raises(InvalidArgumentError, match=f"^{name} must be a"):
            HydeConfig(**{name: value})


@pytest.mark.parametrize("name", sorted({*HydeConfig.__struct_fields__} - {*RANGES}))
@pytest.mark.parametrize("value", [1, None, [], b"x"])
def test_other_types_are_refused_by_name(name, value):
    with pytest.raises(InvalidArgumentError, match=f"^{name} must be"):
        HydeConfig(**{name: value})


@pytest.mark.parametrize("value", ["a\nb", "a\x00", "a\ud800"])
def test_names_without_control_characters(value):
    with pytest.raises(MnemicError, match="embedding_api_key") as raised:
        HydeConfig(embedding_api_key=value)
    assert value not in str(raised.value)


def test_names_lose_white_space_at_their_ends():
    assert HydeConfig(hypothesis_model="  small ").hypothesis_model == "small"
    assert HydeConfig(embedding_model=" \t").embedding_model == ""


@pytest.mark.requirement("C129", "R381")
def test_retrieval_model_is_another_name_of_the_hypothesis_model():
    made = [
        HydeConfig(retrieval_model="small"),
        HydeConfig.from_dict({"retrieval_model": "small"}),
        HydeConfig.from_dict({"retrievalModel": "small"}),
        HydeConfig().updated({"memory.retrieval_model": "small"}),
    ]

    assert made == [HydeConfig(hypothesis_model="small")] * 4
    assert made[0].retrieval_model == "small"
    with pytest.raises(InvalidArgumentError, match="same option"):
        HydeConfig(retrieval_model="a", hypothesis_model="b")
    with pytest.raises(InvalidArgumentError, match="given twice"):
        HydeConfig.from_dict({"retrieval_model": "a", "hypothesis_model": "b"})


@pytest.mark.parametrize(
    "text",
    [
        "enabled = true\nretrieval_top_k = 6",
        "[memory]\nenabled = true\nretrieval_top_k = 6",
        "memory.enabled = true\nmemory.retrievalTopK = 6",
        '"memory.enabled" = true\nretrieval_top_k = 6.0',
        "[memory]\nenabled = true\nretrieval_top_k = 6\n[editor]\ntheme = 'dark'",
    ],
)
def test_the_prefix_may_be_written_in_every_way(text):
    assert HydeConfig.from_toml(text) == HydeConfig(enabled=True, retrieval_top_k=6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory.enabled": True, "enabled": True}, "given twice"),
        ({"memory": {"enabled": True}, "enabled": False}, "given twice"),
        ({"memory": {"retrieval_topk": 1}}, "has no field 'retrieval_topk'; did you mean"),
        ({"editor": {"theme": "dark"}}, "has no field 'editor'"),
        ({1: 2}, "has no field"),
        ([("enabled", True)], "must be a mapping"),
        ({"memory": 3}, "has no field 'memory'"),
        ({"relation_decay": {"nonsense": 1}}, "link type"),
        ({"relation_decay": {"refines": 2}}, r"relation_decay\['refines'\] must be"),
        ({"injection_form": "taged"}, "did you mean 'tagged'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        HydeConfig.from_dict(options)


def test_decays_that_are_not_given_are_the_defaults():
    config = HydeConfig(relation_decay={"refines": 0.5, LinkType.RELATED: 1, 2: 0})

    assert config.decays == (1.0, 0.7, 0.0, 0.0, 0.7, 0.5)
    assert HydeConfig().decays == (0.7, 0.7, 0.9, 0.0, 0.7, 0.9)


def test_a_change_of_the_given_mapping_does_not_show():
    given_decay = {"refines": 0.5}
    config = HydeConfig(relation_decay=given_decay)
    given_decay["refines"] = 0.1

    assert config.relation_decay[LinkType.REFINES] == 0.5
    assert HydeConfig().relation_decay is not HydeConfig().relation_decay


@pytest.mark.requirement("T075")
def test_an_update_takes_plain_values_and_leaves_the_rest():
    before = HydeConfig(enabled=True, retrieval_top_k=3, embedding_api_key="secret-key")
    after = before.updated(
        {"retrieval_top_k": 25.0, "enabled": None, "relation_decay": {"refines": 0.1}}
    )

    assert after.retrieval_top_k == 25
    assert type(after.retrieval_top_k) is int
    assert after.enabled is True
    assert after.embedding_api_key == "secret-key"
    assert after.decays == (0.7, 0.7, 0.9, 0.0, 0.7, 0.1)
    assert before.retrieval_top_k == 3


@pytest.mark.requirement("T075")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enabled", 1),
        ("retrieval_top_k", "ten"),
        ("retrieval_top_k", 2.5),
        ("retrieval_top_k", True),
        ("hypothesis_model", 3),
        ("relation_decay", 0.5),
        ("injection_form", ["markdown"]),
        ("timeout", "2"),
        ("unheard_of", 1),
    ],
)
def test_an_update_leaves_out_wrong_types_and_unknown_names_with_a_warning(name, value):
    with pytest.warns(IgnoredOptionWarning, match=name) as warned:
        after = HydeConfig().updated({name: value, "max_versions": 7})

    assert after == HydeConfig(max_versions=7)
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.requirement("T076", "C118")
def test_an_update_out_of_range_is_refused():
    for data in ({"timeout": 61}, {"retrieval_top_k": 0}, {"injection_form": "html"}, 3):
        with pytest.raises(InvalidArgumentError):
            HydeConfig().updated(data)


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.booleans(),
        "hypothesis_model": st.sampled_from(["", "small"]),
        "retrieval_top_k": st.integers(1, 100),
        "timeout": st.floats(0.001, 60),
        "drop_off": st.none() | st.floats(0, 1),
        "failure_backoff": st.none() | st.floats(0, 3600),
        "relation_decay": st.dictionaries(st.sampled_from(LinkType), st.floats(0, 1)),
        "injection_form": st.sampled_from(["markdown", "tagged"]),
    },
)


@pytest.mark.requirement("T075", "T076")
@given(OPTIONS, st.booleans())
def test_plain_forms_make_the_same_configuration_again(options, in_camel_case):
    config = HydeConfig(**options)
    plain = config.to_dict(camel_case=in_camel_case)

    assert json.loads(json.dumps(plain)) == plain
    assert HydeConfig.from_dict(plain) == config
    assert HydeConfig.from_dict({"memory": plain}) == config
    assert HydeConfig.from_json(config.to_json()) == config
    assert pickle.loads(pickle.dumps(config)) == config == copy.copy(config)  # noqa: S301 - own bytes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert HydeConfig().updated(plain).updated(plain).to_dict() == config.to_dict()


@pytest.mark.requirement("R381")
def test_the_key_shows_nowhere():
    config = HydeConfig(
        embedding_api_key="sk-very-secret", embedding_base_url="https://me:pass-word@host/v1"
    )
    shown = f"{config!r} {config} {config.__rich_repr__()} {config.to_json()} {config.to_dict()}"

    assert "very-secret" not in shown
    assert "embedding_api_key=***" in repr(config)
    assert "pass-word" not in repr(config)
    assert "embedding_api_key=''" in repr(HydeConfig())


DEFAULTS = {
    "enabled": False,
    "classifier_model": "",
    "hypothesis_model": "",
    "embedding_model": "",
    "embedding_base_url": "",
    "embedding_api_key": "",
    "retrieval_top_k": 10,
    "retrieval_hop_depth": 1,
    "retrieval_hypothesis_count": 5,
    "injection_token_budget": 0,
}
OTHERS = {
    "enabled": True,
    "classifier_model": "tiny",
    "hypothesis_model": "small",
    "embedding_model": "vectors",
    "embedding_base_url": "http://127.0.0.1:1/v1",
    "retrieval_top_k": 25,
    "retrieval_hop_depth": 2,
    "retrieval_hypothesis_count": 3,
    "injection_token_budget": 500,
}


def read(config, names):
    return {name: getattr(config, name) for name in names}


@pytest.mark.requirement("T073", "R381", "C129")
def test_the_defaults_are_the_documented_ones():
    assert read(HydeConfig(), DEFAULTS) == DEFAULTS


@pytest.mark.requirement("C116", "C117", "C107", "C111", "C126", "C128", "R335", "R359")
def test_further_options_keep_the_documented_behaviour_by_default():
    config = HydeConfig()
    assert config.timeout == 2.0
    assert config.min_similarity == 0.0
    assert config.drop_off is None
    assert config.candidates_per_hypothesis is None
    assert config.failure_backoff is None
    assert config.max_neighbours == 10
    assert config.max_window_characters == 8000
    assert config.follow_incoming is False
    assert config.relation_decay[LinkType.REFINES] == 0.9
    assert config.relation_decay[LinkType.CONTRADICTS] == 0.9
    assert config.relation_decay[LinkType.RELATED] == 0.7
    assert config.relation_decay[LinkType.SUPERSEDES] == 0


@pytest.mark.requirement("T074")
def test_the_section_has_its_identifier_title_and_description():
    assert HydeConfig.identifier == "memory"
    assert HydeConfig.title
    assert HydeConfig.description
    assert isinstance(HydeConfig.title, str)
    assert isinstance(HydeConfig.description, str)


@pytest.mark.requirement("T075")
def test_none_changes_nothing():
    config = HydeConfig.from_dict(OTHERS)
    assert config.updated(None) == config
    assert config.updated({}) == config
    assert config.updated(dict.fromkeys(OTHERS)) == config


@pytest.mark.requirement("T076")
def test_a_configuration_never_changes():
    config = HydeConfig()
    config.updated({"retrieval_top_k": 3})
    assert config == HydeConfig()
    with pytest.raises(AttributeError):
        config.retrieval_top_k = 3
