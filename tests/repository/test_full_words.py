"""The similarity of a turn of few words has a smaller share in its match."""

import math

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.model import Ranking


@pytest.mark.parametrize("given", [-1, 1001, 2.5, True, "5", math.nan, None])
def test_a_number_of_words_is_checked(given):
    with pytest.raises(InvalidArgumentError, match="must be a whole number from 0 to 1000"):
        Ranking(full_words=given)
