"""The request of a retrieval: what it needs, and what its repr leaves out."""

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.policy import RetrievalRequest
from tests.support.policy import request


@pytest.mark.parametrize(
    "fields",
    [
        {"message": 5},
        {"message": None},
        {"session_id": 7},
        {"user_id": ""},
        {"user_id": 3},
        {"use_memory": "yes"},
        {"project_id": "\n"},
        {"filters": {"nonsense": 1}},
    ],
)
def test_wrong_types_in_a_request_raise(fields):
    with pytest.raises(InvalidArgumentError):
        request(**fields)


def test_a_request_names_what_it_lacks_and_shows_no_message():
    with pytest.raises(
        InvalidArgumentError, match="missing required arguments: 'user_id', 'session_id'"
    ):
        RetrievalRequest("hello")
    shown = repr(request("a secret message", filters={"speaker": "Anna"}))
    assert "secret" not in shown
    assert "Anna" not in shown
    assert "alice" in shown
