"""A naive recall: what the real one is compared with."""

import math

from tests.support.clock import DAY

KINDS = {"episodic": ("EVENT", "CONVERSATION"), "procedural": ("PROCEDURAL",)}
"""Every other type is semantic."""


def salience(memory, now):
    """Return recency, frequency and importance, weighed 0.25, 0.20 and 0.25 of 0.70."""
    recency = 0.5 ** (max(0.0, (now - last_access(memory)) / DAY) / 7)
    frequency = min(1.0, math.log(memory.access_count + 1) / math.log(101))
    return (0.25 * recency + 0.20 * frequency + 0.25 * memory.importance) / 0.70


def last_access(memory):
    return memory.last_accessed_at or memory.created_at


def is_of(memory, wanted):
    """Return whether a memory is of a type or kind; None is any."""
    name = memory.type.name
    if wanted is None or wanted.upper() == name:
        return True
    if wanted == "semantic":
        return not any(name in names for names in KINDS.values())
    return name in KINDS.get(wanted, ())


def matches(memory, asked, now):
    """Return whether a memory may be found, whatever the mode."""
    statuses = {"ACTIVE"}
    statuses |= {"ARCHIVED"} if asked.get("include_archived") else set()
    statuses |= {"SUPERSEDED"} if asked.get("include_superseded") else set()
    asks_project = asked.get("project_id") or asked.get("project_scope") == "strict"
    return (
        (asked.get("all_users") or memory.user_id == asked["user_id"])
        and memory.status.name in statuses
        and (memory.expires_at is None or memory.expires_at > now)
        and is_of(memory, asked.get("type_filter"))
        and (not asks_project or memory.project_id == asked.get("project_id"))
        and salience(memory, now) >= asked.get("min_salience", 0)
    )


def recalled(memories, mode, asked, now, cosine_of):
    """Return the memories that match, each with its score, in the order of a mode."""
    scored = []
    for memory in memories:
        worth, cosine = salience(memory, now), cosine_of(memory)
        if matches(memory, asked, now) and (mode != "relevant" or cosine >= 0.3):
            key = {
                "relevant": 0.6 * cosine + 0.4 * worth,
                "important": worth,
                "frequent": memory.access_count,
                "recent": last_access(memory).timestamp(),
                "newest": memory.created_at.timestamp(),
            }[mode]
            score = {
                "frequent": min(1.0, math.log(memory.access_count + 1) / math.log(101)),
                "recent": 0.5 ** (max(0.0, (now - last_access(memory)) / DAY) / 7),
                "newest": worth,
            }.get(mode, key)
            ties = (-round(worth, 9), -memory.created_at.timestamp(), memory.id)
            ties = ties if mode != "relevant" else ties[1:]
            scored.append(((-round(key, 9), *ties), memory, score))
    scored.sort(key=lambda one: one[0])
    return [(memory, score) for _, memory, score in scored]


def linked(memories, links, start, asked, now):
    """Return what all paths from a memory lead to: the memory, the product, the kinds of a path.

    Links are (from, to, kind, strength). None is the answer where the user has no such start.
    """
    of = {memory.id: memory for memory in memories}
    as_start = {name: asked[name] for name in WHOSE if name in asked}
    if not matches(start, as_start, now):
        return None
    best = {}
    for path in _paths(links, start.id, asked, lambda each: matches(of[each], asked, now)):
        at, strength, kinds = path
        place = (-strength, len(kinds))
        known = best.setdefault(at, (place, set()))
        if place < known[0]:
            known = best[at] = (place, set())
        if place == known[0]:
            known[1].add(kinds)

    def order(found):
        at, (place, _) = found
        return (*place, -of[at].created_at.timestamp(), at)

    return [(of[at], -place[0], kinds) for at, (place, kinds) in sorted(best.items(), key=order)]


WHOSE = ("user_id", "all_users", "include_archived", "include_superseded")


def _paths(links, start, asked, is_there):
    waiting = [(start, 1.0, ())]
    while waiting:
        at, strength, kinds = waiting.pop()
        if kinds:
            yield at, strength, kinds
        if len(kinds) == asked["depth"]:
            continue
        for from_id, to_id, kind, share in links:
            ends = [(from_id, to_id)] if asked["direction"] != "in" else []
            ends += [(to_id, from_id)] if asked["direction"] != "out" else []
            for one, other in ends:
                is_wanted = not asked["kinds"] or kind in asked["kinds"]
                if one == at and other != start and is_wanted and is_there(other):
                    waiting.append((other, strength * share, (*kinds, kind)))
