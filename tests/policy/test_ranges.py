"""The ranges of a retrieval's options: accepted, recommended, and refused."""

import math
import warnings

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.policy import OutsideRecommendedWarning, RetrievalConfig

TABLE = [
    ("top_k", (1, 20), (6, 10), [0, 21, -1, 8.0, True, "8", 10**400]),
    ("clip_sentences", (1, 5), (1, 2), [0, 6, 1.5, False]),
    ("max_tokens", (100, 3000), (100, 1500), [99, 3001, math.inf, "many"]),
    ("min_score", (0.0, 1.0), (0.0, 1.0), [-0.01, 1.01, math.nan, "aut", None, True]),
    ("session_boost", (1.0, 2.0), (1.0, 2.0), [0.99, 2.01, None, math.nan]),
    ("timeout", (0.0, 3600.0), (0.0, 3600.0), [-1, 3601, math.inf, "soon"]),
    ("max_query_length", (1, 10_000), (1, 10_000), [0, 10_001, 4000.0]),
    ("cache_ttl", (0.0, 60.0), (0.0, 60.0), [-1, 61, None]),
    ("near_duplicates", (0.0, 1.0), (0.0, 1.0), [-0.1, 1.1, "near"]),
]
RANGES = [(name, ends) for name, ends, _, _ in TABLE]
OUTSIDE = [(name, ends, value) for name, ends, _, wrong in TABLE for value in wrong]


@pytest.mark.requirement("R288", "C052")
@pytest.mark.filterwarnings("ignore::mnemic.policy.OutsideRecommendedWarning")
@pytest.mark.parametrize(("name", "ends"), RANGES)
def test_both_ends_of_an_administrators_range_are_accepted(name, ends):
    for end in ends:
        assert getattr(RetrievalConfig(**{name: end}), name) == end


@pytest.mark.requirement("R288", "C052")
@pytest.mark.parametrize(("name", "ends", "value"), OUTSIDE)
def test_a_value_out_of_range_is_refused_with_field_value_and_whole_range(name, ends, value):
    with pytest.raises(InvalidArgumentError) as raised:
        RetrievalConfig(**{name: value})
    message = str(raised.value)
    assert message.startswith(f"{name} must be ")
    assert f"from {ends[0]:g} to {ends[1]:g}" in message
    assert ", got " in message


@pytest.mark.requirement("C052")
@pytest.mark.parametrize(
    ("name", "inside", "below", "above"),
    [
        ("top_k", (6, 10), 5, 11),
        ("clip_sentences", (1, 2), None, 3),
        ("max_tokens", (100, 1500), None, 1501),
    ],
)
def test_a_value_outside_the_recommended_range_is_warned_of(name, inside, below, above):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in inside:
            RetrievalConfig(**{name: value})
    for value in (below, above):
        if value is not None:
            with pytest.warns(
                OutsideRecommendedWarning, match=f"{name}={value} is outside"
            ) as told:
                RetrievalConfig(**{name: value})
            assert len(told) == 1
            assert told[0].filename == __file__


@pytest.mark.requirement("C052")
def test_one_construction_warns_once_of_all_its_options():
    with pytest.warns(OutsideRecommendedWarning) as told:
        RetrievalConfig.from_dict({"topK": 3, "clipSentences": 5, "maxTokens": 3000})
    assert len(told) == 1
    assert told[0].filename == __file__
    assert all(
        name in str(told[0].message) for name in ("top_k=3", "clip_sentences=5", "max_tokens=3000")
    )
    assert issubclass(OutsideRecommendedWarning, UserWarning)
