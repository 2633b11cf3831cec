"""A naive twin of neighbours and heads: all paths, one by one, over what the store has."""

from mnemic.model import LinkType, MemoryStatus, Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.operations import EntriesById, Links, StoredEntries


class Net:
    """All entries and links of an agent, deleted ones included, by row."""

    def __init__(self, store, agent, now):
        everyone, self.now = Scope(agent, all_users=True), now
        stored = store.read(
            StoredEntries(everyone, 0, 10_000, now=now, include_deleted=True, model=None)
        )
        entries = [each.entry for each in stored]
        located = {
            (entry.user_id, entry.id): store.read(
                EntriesById(Scope(agent, entry.user_id), [entry.id], now=now, include_deleted=True)
            )[entry.id].row
            for entry in entries
        }
        self.entries = {located[entry.user_id, entry.id]: entry for entry in entries}
        self.links = [
            (read.from_row, read.to_row, read.link.type, read.link.strength)
            for read in store.read(Links(everyone, now, include_deleted=True))
        ]

    def place(self, scope, row):
        entry = self.entries.get(row)
        if entry is None or entry.forgotten_at or entry.status is not MemoryStatus.ACTIVE:
            return "absent"
        is_found = entry.is_active(self.now) and scope.has(entry)
        return "selected" if is_found else "elsewhere"

    def heads(self, scope, row, chain=()):
        """Return the rows that a row stands for."""
        place = self.place(scope, row)
        if place != "absent" or row in chain:
            return [row] if place == "selected" else []
        newer = [
            one for one, other, kind, _ in self.links if (other, kind) == (row, LinkType.SUPERSEDES)
        ]
        return [head for one in newer for head in self.heads(scope, one, (*chain, row))]

    def head(self, scope, row):
        def order(head):
            entry = self.entries[head]
            return -to_microseconds(entry.updated_at), entry.id.bytes

        return min(self.heads(scope, row), key=order, default=None)

    def ends(self, row, hops):
        for one, other, kind, strength in self.links:
            factor = hops.decays[kind] * strength
            if factor > 0 and one == row:
                yield other, kind, factor
            # Of a memory in another state only the supersessions are known.
            is_known = self.place(Scope("default", all_users=True), one) != "absent"
            is_followed = hops.follow_incoming and (is_known or kind is LinkType.SUPERSEDES)
            if factor > 0 and other == row and is_followed:
                yield one, kind, factor

    def neighbours(self, scope, starts, hops):
        """Return row, score, type, row before and depth of each neighbour, best first."""
        best, first = {}, {}
        for row, score in starts:
            if self.place(scope, row) == "selected":
                first[row] = max(first.get(row, 0.0), score)
        paths = [(row, score, 0) for row, score in first.items()]
        while paths:
            via, score, depth = paths.pop()
            for end, kind, factor in self.ends(via, hops) if depth < hops.depth else ():
                row = self.head(scope, end)
                if row is None or row in first:
                    continue
                found = (-(score * factor), depth + 1, via, int(kind))
                best[row] = min(best.get(row, found), found)
                paths.append((row, score * factor, depth + 1))

        def order(row):
            entry, (score, depth, *_) = self.entries[row], best[row]
            created = -to_microseconds(entry.created_at)
            return score, depth, created, entry.id.bytes, entry.user_id or ""

        return [
            (row, -best[row][0], best[row][3], best[row][2], best[row][1])
            for row in sorted(best, key=order)
        ][: hops.limit]

    def versions(self, scope, entry):
        """Return all versions before an entry that are present, latest first."""
        found, seen = [], {entry.id}
        by_name = {(each.user_id, each.id): each for each in self.entries.values()}
        while entry is not None and entry.supersedes not in (None, *seen):
            seen.add(entry.supersedes)
            entry = by_name.get((entry.user_id, entry.supersedes))
            if entry is None or not scope.has(entry):
                break
            if entry.is_present(self.now):
                found.append(entry)
        return found
