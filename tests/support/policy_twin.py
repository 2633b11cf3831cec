"""A naive twin of the retrieval policy: the document with its rulings, step by step.

It shares no code with the package: only the records are its own. Costs are counted by rendering a
whole block for each question.
"""

# ruff: noqa: RUF001 - the signs of many scripts are the point

import hashlib
import math
import re
import unicodedata
from datetime import UTC, timedelta
from fractions import Fraction

from mnemic.model.payload import PayloadMemory
from tests.support.clock import NOON

SENTENCE_SIGNS = ".,;:!?…¡¿、。，；：！？．｡؟،؛۔।॥"
HEADER = "## Relevant Context from Previous Conversations"
HEADINGS = {
    "message": "### Previous Messages",
    "fact": "### Known Facts",
    "summary": "### Conversation Summaries",
}
MINUTE = timedelta(minutes=1)


def made(number, content="tea at noon", score=0.5, minutes=0, **fields):
    """Return a memory of a prompt block, whose id is its number."""
    given = {"id": f"{number:04}", "content": content, "timestamp": NOON + minutes * MINUTE}
    return PayloadMemory(**{**given, "score": score, **fields})


def copied(memory, **changes):
    """Return a new record with the fields of a memory."""
    given = {name: getattr(memory, name) for name in memory.__struct_fields__}
    return PayloadMemory(**{**given, **changes})


def ids(memories):
    """Return the ids of memories, in order."""
    return [memory.id for memory in memories]


def is_boundary(character):
    """Return whether the documented normal form strips a character at both ends."""
    category = unicodedata.category(character)
    return (
        character.isspace()
        or character in "\"'"
        or character in SENTENCE_SIGNS
        or category in {"Ps", "Pe", "Pi", "Pf"}
    )


def normal_form(text):
    """Return the text that is hashed for duplicates."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    collapsed = " ".join(folded.split())
    start, end = 0, len(collapsed)
    while start < end and is_boundary(collapsed[start]):
        start += 1
    while end > start and is_boundary(collapsed[end - 1]):
        end -= 1
    return collapsed[start:end] or collapsed


def digest(text):
    """Return the SHA-256 of a text's normal form."""
    return hashlib.sha256(normal_form(text).encode()).hexdigest()


def by_score(memory):
    """Return the key of the order by score: the best, the newest, the smallest id."""
    return (-memory.score, -memory.timestamp.timestamp(), memory.id)


def by_time(memory):
    """Return the key of the order by time: the newest, the best, the smallest id."""
    return (-memory.timestamp.timestamp(), -memory.score, memory.id)


def deduplicated(memories, contents=None):
    """Return the id of each memory kept, in the order of the input, with its duplicates' ids."""
    texts = contents or [memory.content for memory in memories]
    groups = {}
    for memory, text in zip(memories, texts, strict=True):
        groups.setdefault(digest(text), []).append(memory)
    ordered = (sorted(group, key=by_score) for group in groups.values())
    kept = {group[0].id: tuple(ids(group[1:])) for group in ordered}
    return [(memory.id, kept[memory.id]) for memory in memories if memory.id in kept]


def seats(limit, ratio):
    """Return the seats of both lists, by largest remainder; ties go to the primary one."""
    shares = [limit * Fraction(str(ratio)), limit * (1 - Fraction(str(ratio)))]
    given = [math.floor(share) for share in shares]
    remainders = [share - whole for share, whole in zip(shares, given, strict=True)]
    if sum(given) < limit:
        given[remainders[1] > remainders[0]] += 1
    return given


def turns(limit, strategy, ratio):
    """Yield the key of the list that fills each place."""
    if strategy == "alternate":
        for place in range(limit):
            yield by_time if place % 2 else by_score
        return
    lists = (by_score, by_time) if strategy == "score_first" else (by_time, by_score)
    for key, count in zip(lists, seats(limit, 1.0 if ratio is None else ratio), strict=True):
        for _ in range(count):
            yield key


def interleaved(memories, limit, strategy="alternate", ratio=None):
    """Return the ids of the memories that fill the places, in order."""
    left, found = list(memories), []
    for key in turns(limit, strategy, ratio):
        if left:
            found.append(min(left, key=key))
            left.remove(found[-1])
    return ids(found)


def utc(time):
    """Return a time in ISO 8601, in UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def line(memory, label=None):
    """Return the line of a memory whose text needs no neutralising."""
    if memory.type == "message":
        name = memory.speaker or memory.role or "user"
        shown = "" if memory.content.casefold().startswith(f"{name}: ".casefold()) else f"{name}: "
        return f"[{utc(memory.timestamp)}] {shown}{memory.content}"
    number = f" ({label}: {memory.score:.2f})" if label else ""
    if memory.confidence is not None and label != "relevance":
        number = f" (confidence: {memory.confidence:.2f})"
    return f"- {memory.content}{number if memory.type == 'fact' else ''}"


def block(memories, label=None, milliseconds=None):
    """Return the documented block of memories whose texts need no neutralising."""
    if not memories:
        return ""
    parts = [HEADER, ""]
    for kind, heading in HEADINGS.items():
        lines = [line(memory, label) for memory in memories if memory.type == kind]
        parts += [heading, *lines, ""] if lines else []
    timing = "" if milliseconds is None else f" in {milliseconds}ms"
    noun = "memory" if len(memories) == 1 else "memories"
    return "\n".join([*parts, f"_Retrieved {len(memories)} {noun}{timing}_", ""])


class ByteCounter:
    """A foreign counter: a token for each byte of UTF-8."""

    def count(self, text, /):
        return len(text.encode())


class PieceCounter:
    """A foreign counter: one token for three letters of a word, and one for any other sign."""

    def count(self, text, /):
        pieces = re.findall(r"\w{1,3}|[^\w\s]", text)
        return len(pieces) + 2 * bool(text)


class BucketCounter:
    """A foreign counter that is far from additive: it rounds up to a multiple of seven."""

    def count(self, text, /):
        return -(-len(text) // 7) * 7


OPENINGS = re.compile(
    r"```|</?[a-z!|]|<\||\[/?inst\]|<<sys>>|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2060\ufeff"
    r"\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\u2028\u2029\U000e0000-\U000e007f]",
    re.IGNORECASE,
)
ROLE = re.compile(
    r"[\s*_#>\"'\[(]*(?:system|assistant|user|human|developer|tool|ai)\s*:", re.IGNORECASE
)
BLOCK_START = re.compile(
    r"(?:[-+*]\s+|\d+[.)]\s+)*(?:#{1,6}(?:\s|$)|>|~~~|([-=*_])(?:\s*\1){2,}\s*$)"
)
MESSAGE = re.compile(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)\] [^:]*: (.*)")
FACT = re.compile(r"- (.*?)(?: \((?:confidence|relevance): \d+\.\d\d\))?")
SUMMARY = re.compile(r"- (.*)")
LINES = {"message": MESSAGE, "fact": FACT, "summary": SUMMARY}
FOOTER = re.compile(r"_Retrieved \d+ memor(?:y|ies)(?: in \d+(?:\.\d+)?ms)?_")


def broken_line(text, kind):
    """Return why a line of a block is not that of one harmless memory, or None."""
    found = LINES[kind].fullmatch(text)
    if not found:
        return f"not a line of a {kind}"
    if kind != "message" and ROLE.match(found[1]):
        return "a role opens"
    return "a heading or a quotation opens" if BLOCK_START.match(found[1]) else None


def broken(text, memories):
    """Return how a rendered block leaves its frame, or None: an own strict reader of the form."""
    if opening := OPENINGS.search(text):
        return f"{opening[0]!r} at {opening.start()}"
    wanted = [HEADER, ""]
    for kind, heading in HEADINGS.items():
        count = sum(memory.type == kind for memory in memories)
        wanted += [heading, *[kind] * count, ""] if count else []
    lines = text.rstrip("\n").split("\n")
    if len(lines) != len(wanted) + 1 or not FOOTER.fullmatch(lines[-1]):
        return f"{len(lines)} lines for {len(wanted) + 1}"
    for got, form in zip(lines, wanted, strict=False):
        if (reason := broken_line(got, form)) if form in LINES else got != form:
            return f"{got!r}: {reason}"
    return None
