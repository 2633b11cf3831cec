"""Wrong arguments of the functions of a policy: errors of mnemic's own, which name the argument."""

from datetime import UTC, datetime

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.policy import (
    PackingPlan,
    PayloadMemory,
    Redaction,
    RetrievalRequest,
    clip,
    deduplicate,
    enforce_budget,
    format_for_system_prompt,
    interleave,
    pack,
    redact,
    trigger,
)
from mnemic.reporting.description import described

NOTHING_TO_PACK = [None, 3, "text", b"text", [3], ["text"], [None], {"a": 1}, object()]
OF_MEMORIES = {
    "pack": lambda given: pack(given, PackingPlan()),
    "deduplicate": deduplicate,
    "interleave": lambda given: interleave(given, 3),
    "enforce_budget": enforce_budget,
    "format_for_system_prompt": format_for_system_prompt,
}
OTHERS = {
    "pack": lambda given: pack([], given),
    "trigger": trigger,
    "clip": clip,
    "redact": lambda given: redact(given, Redaction()),
    "redaction": lambda given: redact("a text", given),
    "max_tokens": lambda given: enforce_budget([], given),
}


@pytest.mark.parametrize("given", NOTHING_TO_PACK, ids=described)
@pytest.mark.parametrize("call", OF_MEMORIES.values(), ids=OF_MEMORIES)
def test_what_is_no_list_of_memories_is_refused_by_name(call, given):
    with pytest.raises(InvalidArgumentError, match=r"^(memories|payload)(\[0\])? must be "):
        call(given)


@pytest.mark.parametrize("given", [None, [3], b"text", object(), PackingPlan], ids=described)
@pytest.mark.parametrize("call", OTHERS.values(), ids=OTHERS)
def test_other_arguments_of_a_wrong_type_are_refused_by_name(call, given):
    with pytest.raises(
        InvalidArgumentError, match=r"^(plan|request|text|redaction|max_tokens) must be "
    ):
        call(given)


def test_a_generator_of_memories_is_a_list_of_them():
    memory = PayloadMemory(id="a", content="Likes tea", timestamp=datetime.now(UTC), score=0.5)
    for call in OF_MEMORIES.values():
        assert call([memory])
    assert deduplicate(each for each in [memory]) == [memory]
    assert trigger(RetrievalRequest("Where?", "alice", "s")).reason
