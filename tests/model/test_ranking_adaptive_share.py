"""The share of similarity that grows with the mean length of a user's memories."""

import msgspec
import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.model import HYBRID, AdaptiveShare

ADAPTIVE = AdaptiveShare(short=0.1, long=0.9, length=4)
RANKING = msgspec.structs.replace(HYBRID, similarity=ADAPTIVE, covered_only=False, full_words=0)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("short", -0.1),
        ("short", 1.1),
        ("long", None),
        ("long", "1"),
        ("length", 0),
        ("length", float("inf")),
        ("length", float("nan")),
        ("length", True),
    ],
)
def test_a_share_out_of_range_is_refused(field, given):
    with pytest.raises(InvalidArgumentError, match=f"{field} must be a.* number"):
        AdaptiveShare(**{field: given})


def test_an_adaptive_share_is_neither_a_search_by_keywords_nor_one_by_meaning():
    assert RANKING.has_similarity
    assert RANKING.has_keywords
    assert not msgspec.structs.replace(RANKING, similarity=0.0).has_similarity
    assert not msgspec.structs.replace(RANKING, similarity=1.0).has_keywords
