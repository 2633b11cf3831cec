"""Context windows of tests, with words for tokens."""

from mnemic.context import (
    ContextItem,
    ContextItemType,
    ContextWindow,
)
from tests.support.clock import SECOND, Clock

SYSTEM = ContextItemType.SYSTEM_PROMPT
INSTRUCTION = ContextItemType.INSTRUCTION
DOCUMENT = ContextItemType.RETRIEVED_DOCUMENT
NOTE = ContextItemType.WORKING_MEMORY
TOOL = ContextItemType.TOOL_RESULT
USER = ContextItemType.USER_MESSAGE
ASSISTANT = ContextItemType.ASSISTANT_MESSAGE
OTHER = ContextItemType.OTHER


class Words:
    """Counts words, so that tests can say how long a text is."""

    def count(self, text, /):
        return len(text.split())


def opened(max_tokens=100, **options):
    return ContextWindow(max_tokens, **{"counter": Words(), "clock": Clock(step=SECOND), **options})


def words(number, word="word"):
    return " ".join([word] * number)


def contents(items):
    return [item.content for item in items]


def document(content, ref=None, priority=50, **fields):
    return ContextItem(content=content, type=DOCUMENT, source_ref=ref, priority=priority, **fields)
