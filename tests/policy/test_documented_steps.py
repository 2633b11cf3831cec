"""The steps change no input, and need little memory."""

import pytest

from mnemic.context.budget import enforce_budget
from mnemic.context.interleaving import interleave
from mnemic.context.packing import deduplicate
from mnemic.context.prompt_block import format_for_system_prompt
from mnemic.model.payload import Provenance
from tests.context.test_prompt_block_documented import MIXED
from tests.support.policy_twin import copied


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
