"""Options that embedders and language models over HTTP share."""

import pytest

from mnemic import HttpEmbedder
from mnemic.errors import InvalidArgumentError
from mnemic.llm import HttpLanguageModel
from tests.http.test_service import KINDS, no_variables

__all__ = ["no_variables"]  # a fixture


@pytest.mark.requirement("T078")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["", "  "])
def test_a_missing_model_is_an_error(kind, name):
    with pytest.raises(InvalidArgumentError, match="model name must not be empty"):
        kind(name, base_url="http://localhost:1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": True},
        {"timeout": "5"},
        {"max_retries": -1},
        {"max_retries": 11},
        {"max_retries": 1.5},
        {"max_connections": 0},
        {"extra_body": {"model": "other"}},
        {"extra_body": {1: 2}},
        {"extra_body": {"a": object()}},
        {"extra_body": []},
    ],
)
def test_invalid_options_are_refused(kind, options):
    with pytest.raises(InvalidArgumentError):
        kind("m", base_url="http://localhost:1", **options)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (HttpEmbedder, {"dimensions": 0}),
        (HttpEmbedder, {"dimensions": 10**9}),
        (HttpEmbedder, {"batch_size": 0}),
        (HttpEmbedder, {"extra_body": {"encoding_format": "int8"}}),
        (HttpEmbedder, {"extra_body": {"input": []}}),
        (HttpLanguageModel, {"temperature": 3}),
        (HttpLanguageModel, {"temperature": "hot"}),
        (HttpLanguageModel, {"max_tokens": 0}),
        (HttpLanguageModel, {"extra_body": {"stream": True}}),
    ],
)
def test_invalid_options_of_one_kind_are_refused(kind, options):
    with pytest.raises(InvalidArgumentError):
        kind("m", base_url="http://localhost:1", **options)
