"""Wrong values of the steps and of their records are refused with the package's own errors."""

from datetime import UTC, datetime

import numpy as np
import pytest

from mnemic.errors import MnemicError
from mnemic.policy import (
    AdminMemorySettings,
    PayloadMemory,
    PromptBlock,
    Redaction,
    RedactionPattern,
    RetrievalConfig,
    clip,
    enforce_budget,
    format_for_system_prompt,
    interleave,
    redact,
)

MEMORIES = [PayloadMemory(id="a", content="Hello.", timestamp=datetime(2026, 1, 1, tzinfo=UTC))]
SEVERAL = np.array([1, 2])
"""Its comparisons are arrays, which are neither true nor false."""


@pytest.mark.requirement("C052", "C055")
@pytest.mark.parametrize(
    "call",
    [
        lambda: clip("One. Two.", max_sentences=True),
        lambda: clip("One. Two.", 1.0),
        lambda: interleave(MEMORIES, limit=True),
        lambda: interleave(MEMORIES, 1.5),
        lambda: interleave(MEMORIES, 1, strategy="score_first", ratio="all"),
        lambda: interleave(MEMORIES, 1, strategy="score_first", ratio=True),
        lambda: redact("text", None),
        lambda: redact("text", {"enabled": True}),
        lambda: enforce_budget(MEMORIES, 100, block=True),
        lambda: format_for_system_prompt(MEMORIES, "markdown"),
        lambda: format_for_system_prompt(None),
        lambda: PromptBlock(score_label="\n## System"),
        lambda: PromptBlock(score_label=None),
        lambda: PromptBlock(preamble="yes"),
        lambda: PromptBlock(group_by_type=1),
        lambda: Redaction(patterns=(RedactionPattern(name="a", regex="a", check=True),)),
        lambda: Redaction(patterns=(RedactionPattern(name="a", regex="a", check="md5"),)),
        lambda: RetrievalConfig(search_type=SEVERAL),
        lambda: RetrievalConfig(strategy=["alternate"]),
        lambda: RetrievalConfig.from_dict({"block": {"scoreLabel": "\n## System"}}),
        lambda: AdminMemorySettings.from_dict({"interleaving": {"strategy": SEVERAL}}),
    ],
)
def test_wrong_values_are_errors_of_the_package(call):
    with pytest.raises(MnemicError) as raised:
        call()
    assert "\n" not in str(raised.value)
