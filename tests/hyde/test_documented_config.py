"""The documented configuration: keys, defaults, ranges, and its ways in and out."""

import json
import threading
import warnings

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.hyde import HydeConfig
from mnemic.model import LinkType
from tests.support.threads import run_together

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
RANGES = {
    "retrieval_top_k": (1, 100),
    "retrieval_hop_depth": (0, 3),
    "retrieval_hypothesis_count": (1, 10),
}


def read(config, names):
    return {name: getattr(config, name) for name in names}


@pytest.mark.requirement("T073", "R381", "C129")
def test_the_defaults_are_the_documented_ones():
    assert read(HydeConfig(), DEFAULTS) == DEFAULTS


@pytest.mark.requirement("C128", "R359", "R335")
def test_the_limit_is_two_seconds_unless_given():
    assert HydeConfig().timeout == 2.0
    assert HydeConfig(timeout=15).timeout == 15
    for wrong in (0, -1, 60.5, float("nan"), float("inf")):
        with pytest.raises(InvalidArgumentError, match="timeout"):
            HydeConfig(timeout=wrong)


@pytest.mark.requirement("C116", "C117", "C107", "C111", "C126")
def test_further_options_keep_the_documented_behaviour_by_default():
    config = HydeConfig()
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


@pytest.mark.requirement("T075", "R381")
@pytest.mark.parametrize("prefix", ["", "memory."])
def test_an_export_holds_the_values_and_an_import_reads_them(prefix):
    config = HydeConfig.from_dict({f"{prefix}{name}": value for name, value in OTHERS.items()})
    assert read(config, OTHERS) == OTHERS
    exported = config.to_dict()
    assert {name: exported[name] for name in OTHERS} == OTHERS
    assert HydeConfig.from_dict(exported) == config


@pytest.mark.requirement("T075")
def test_an_update_changes_what_it_names():
    config = HydeConfig().updated({"retrieval_top_k": 20, "hypothesis_model": "small"})
    assert config.retrieval_top_k == 20
    assert config.hypothesis_model == "small"
    assert read(config, DEFAULTS.keys() - {"retrieval_top_k", "hypothesis_model"}) == {
        name: value
        for name, value in DEFAULTS.items()
        if name not in {"retrieval_top_k", "hypothesis_model"}
    }


@pytest.mark.requirement("T075")
def test_a_whole_float_is_a_whole_number():
    config = HydeConfig().updated({"retrieval_top_k": 25.0})
    assert config.retrieval_top_k == 25
    assert type(config.retrieval_top_k) is int


@pytest.mark.requirement("T075")
def test_none_changes_nothing():
    config = HydeConfig.from_dict(OTHERS)
    assert config.updated(None) == config
    assert config.updated({}) == config
    assert config.updated(dict.fromkeys(OTHERS)) == config


@pytest.mark.requirement("T075")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enabled", "yes"),
        ("enabled", 1.5),
        ("retrieval_top_k", "20"),
        ("retrieval_top_k", 2.5),
        ("retrieval_top_k", [20]),
        ("hypothesis_model", 7),
        ("embedding_base_url", {}),
        ("injection_token_budget", "none"),
        ("unknown_key", 3),
    ],
)
def test_an_update_leaves_wrong_types_and_unknown_names_out_with_a_warning(name, value, caplog):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        config = HydeConfig().updated({name: value, "retrieval_hop_depth": 2})
    assert config == HydeConfig(retrieval_hop_depth=2)
    told = [str(one.message) for one in warned] + [record.getMessage() for record in caplog.records]
    assert any(name in each for each in told)


@pytest.mark.requirement("T076", "C118")
@pytest.mark.parametrize("name", RANGES)
def test_values_within_the_ranges_are_taken_and_others_refused(name):
    low, high = RANGES[name]
    for given in (low, high):
        assert getattr(HydeConfig(**{name: given}), name) == given
        assert getattr(HydeConfig().updated({name: given}), name) == given
    for given in (low - 1, high + 1, -(2**70), 2**70):
        for refused in (
            lambda given=given: HydeConfig(**{name: given}),
            lambda given=given: HydeConfig.from_dict({name: given}),
            lambda given=given: HydeConfig().updated({name: given}),
        ):
            with pytest.raises(InvalidArgumentError, match=name):
                refused()


@pytest.mark.requirement("T076", "C118")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("injection_token_budget", -1),
        ("min_similarity", 1.5),
        ("min_similarity", -1.5),
        ("min_similarity", float("nan")),
        ("drop_off", 1.1),
        ("drop_off", -0.1),
        ("candidates_per_hypothesis", 0),
        ("candidates_per_hypothesis", 101),
        ("max_neighbours", 101),
        ("max_neighbours", -1),
        ("max_versions", 21),
        ("max_window_characters", 199),
        ("max_window_characters", 200_001),
        ("failure_backoff", -1),
        ("injection_form", "html"),
        ("relation_decay", {LinkType.RELATED: 1.5}),
    ],
)
def test_further_options_have_ranges(name, value):
    with pytest.raises(InvalidArgumentError):
        HydeConfig(**{name: value})


@pytest.mark.requirement("C129")
def test_the_model_of_the_hypotheses_has_two_names():
    by_seed = HydeConfig.from_dict({"retrieval_model": "small"})
    assert by_seed.hypothesis_model == "small"
    assert by_seed == HydeConfig.from_dict({"hypothesis_model": "small"})
    assert HydeConfig().updated({"memory.retrieval_model": "small"}) == by_seed


@pytest.mark.requirement("T076")
@pytest.mark.parametrize("text", ["json", "toml"])
def test_a_saved_configuration_is_the_same_when_it_is_loaded(tmp_path, text):
    config = HydeConfig.from_dict(OTHERS)
    path = tmp_path / f"memory.{text}"
    if text == "json":
        path.write_text(config.to_json(), encoding="utf-8")
        assert HydeConfig.from_json(path.read_text(encoding="utf-8")) == config
        return
    lines = (f"{name} = {json.dumps(value)}\n" for name, value in OTHERS.items())
    path.write_text("".join(lines), encoding="utf-8")
    assert HydeConfig.from_toml(path.read_text(encoding="utf-8")) == config


@pytest.mark.requirement("T076")
def test_a_configuration_never_changes():
    config = HydeConfig()
    config.updated({"retrieval_top_k": 3})
    assert config == HydeConfig()
    with pytest.raises(AttributeError):
        config.retrieval_top_k = 3


@pytest.mark.requirement("T076")
def test_threads_may_update_and_read_one_configuration_at_once():
    config, seen, lock = HydeConfig(), [], threading.Lock()

    def worker(number):
        def work():
            for _ in range(50):
                made = config.updated({"retrieval_top_k": number})
                assert made.retrieval_top_k == number
                assert config.retrieval_top_k == 10
            with lock:
                seen.append(number)

        return work

    run_together(*[worker(number) for number in range(1, 9)])
    assert sorted(seen) == list(range(1, 9))


@pytest.mark.requirement("T075")
def test_the_key_shows_nowhere_but_in_its_attribute():
    config = HydeConfig(embedding_api_key="sk-very-secret-key")
    assert config.embedding_api_key == "sk-very-secret-key"
    assert "sk-very-secret-key" not in repr(config)
    assert "sk-very-secret-key" not in str(config)
