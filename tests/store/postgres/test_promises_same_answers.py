"""A program of many users gets the same answers from every store, to the last bit."""

from functools import cache

import pytest

from mnemic.repository import database_search
from tests.promises.test_non_interference import answers_of, long_program
from tests.support.places import IN_POSTGRES

SEED = 20


@cache
def answers_in(kind):
    return answers_of(long_program(SEED), kind=kind, with_others=True)


@pytest.mark.parametrize("kind", IN_POSTGRES)
def test_a_program_gets_the_answers_of_a_file_from_a_database(kind):
    for (verb, wanted), (_, given) in zip(answers_in("sqlite"), answers_in(kind), strict=True):
        assert (verb, wherever_searched(given)) == (verb, wherever_searched(wanted))


def test_answers_are_the_same_wherever_the_memories_of_others_let_searches_run(monkeypatch):
    monkeypatch.setattr(database_search, "SMALL_AGENT", 40)
    alone, beside = (
        answers_of(long_program(0), kind="postgres", with_others=others) for others in (False, True)
    )
    assert wherever_searched(alone) == wherever_searched(beside)


def wherever_searched(answer):
    """Return an answer without what says where its search ran."""
    if isinstance(answer, list | tuple):
        return [wherever_searched(part) for part in answer if part not in PLACES]
    return answer


PLACES = [("searched_in", "memory"), ("searched_in", "database")]
