"""The steps change no input, and need little memory."""

import tracemalloc

import pytest

from mnemic.context.budget import enforce_budget
from mnemic.context.interleaving import interleave
from mnemic.context.packing import deduplicate
from mnemic.context.prompt_block import format_for_system_prompt
from mnemic.model.payload import Provenance
from tests.context.test_prompt_block_documented import MIXED
from tests.support.policy_twin import copied, made


@pytest.mark.requirement("C041", "C039")
def test_no_step_changes_its_input():
    memories = tuple(MIXED)
    copies = [copied(memory) for memory in memories]
    deduplicate(memories)
    interleave(memories, 3)
    enforce_budget(memories, 100)
    format_for_system_prompt(memories)
    assert list(memories) == copies
    assert all(memory.provenance == Provenance() for memory in memories)


@pytest.mark.requirement("R314")
def test_forty_candidates_of_two_kilobytes_need_under_a_megabyte():
    memories = [made(number, f"{number} fact. " * 180, score=number / 40) for number in range(40)]

    def run():
        kept = interleave(deduplicate(memories), 8)
        return format_for_system_prompt(enforce_budget(kept, 1500))

    assert run()
    tracemalloc.start()
    try:
        run()
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
