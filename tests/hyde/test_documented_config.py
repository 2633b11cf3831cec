"""The documented configuration: keys, defaults, ranges, and its ways in and out."""

import pytest

from mnemic.hyde import HydeConfig
from mnemic.model import LinkType

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
