"""What carries out the operations on an agent in dicts: a function named as the operation is."""

from collections import Counter
from uuid import UUID

import numpy as np
from msgspec.structs import replace

from mnemic import _core
from mnemic.model import LinkType, MemoryStatus, UserUsage
from mnemic.model.filter import references
from mnemic.model.rows import RowBatch, State
from mnemic.model.scope import not_found
from mnemic.model.timestamps import to_microseconds
from mnemic.store import values
from mnemic.store.adding import add_options
from mnemic.store.eviction import Write
from mnemic.store.new_rows import encoded, stored_of
from mnemic.store.row_codec import check_size, with_changed
from mnemic.store.rules import EXPIRED, FORGOTTEN, check_one_user, statistics_of
from tests.support.dict_store.adding import DictAdding, evicted
from tests.support.dict_store.agent import CODEC, EVERY, is_any, size_of
from tests.support.filter_twin import ordered

# Entries


def _active(wanted):
    return lambda entry: wanted.include_deleted or entry.is_active(wanted.now)


def _present(wanted):
    is_shown = getattr(wanted, "include_deleted", False)
    return lambda entry: is_shown or entry.is_present(wanted.now)


def entries_by_id(agent, wanted):
    found = agent.within(wanted.scope, _active(wanted), ids=wanted.ids)
    return {entry.id: values.EntryRow(row, entry) for row, entry in found.items()}


def entries_by_row(agent, wanted):
    found = agent.within(wanted.scope, _active(wanted))
    return {row: entry for row, entry in found.items() if row in wanted.rows}


def successors(agent, wanted):
    found = agent.linked(agent.everyone, is_any)
    newer = {
        read.from_row
        for read in found
        if read.link.type is LinkType.SUPERSEDES and read.to_row in wanted.rows
    }
    present = agent.within(wanted.scope, _present(wanted))
    return {row: entry for row, entry in present.items() if row in newer}


def stored_entries(agent, wanted):
    found = agent.within(wanted.scope, _present(wanted))
    later = [row for row in found if row > wanted.after]
    return [_stored(agent, row, wanted.model) for row in later[: wanted.limit]]


def _stored(agent, row, model):
    entry, used, more = agent.entries[row], agent.keys.get(row), ()
    vectors = agent.vectors_of(row, model)
    if vectors is not None:
        first, *more = vectors
        entry = entry.with_embedding(first, model)
    return values.StoredEntry(row, entry, used and used.key, tuple(more))


def _listed(agent, wanted, expression):
    """Return the entries of a list by row: active ones, unless the filter tests the status."""
    found = agent.within(wanted.scope, _present(wanted))
    if not references(expression, "status"):
        found = {row: one for row, one in found.items() if one.status is MemoryStatus.ACTIVE}
    return agent.passing(expression, found)


def entry_page(agent, wanted):
    found = _listed(agent, wanted, wanted.expression).values()
    by_user = sorted(found, key=lambda entry: entry.user_id or "")
    entries = ordered(by_user, wanted.order.name)
    if wanted.after is not None:
        entries = [entry for entry in entries if _place(entry) > _place(wanted.after)]
    return entries[wanted.offset : wanted.offset + wanted.limit]


def _place(one):
    return -to_microseconds(one.created_at), one.id, one.user_id or ""


def entry_count(agent, wanted):
    return len(_listed(agent, wanted, wanted.expression or EVERY))


def distinct_values(agent, wanted):
    query = wanted.query
    records = agent.records(_listed(agent, wanted, query.narrowed(wanted.expression)))
    page = query.prefix, query.offset, query.limit
    return query.values(_core.distinct_values(EVERY, [records], query.field, *page))


# Figures


def users(agent, wanted):
    names = {entry.user_id or "" for entry in agent.entries.values()}
    found = sorted(name for name in names if name.startswith(wanted.prefix or ""))
    page = found[wanted.offset : wanted.offset + wanted.limit]
    return [_usage(agent, agent.user(name or None), wanted.now) for name in page]


def _usage(agent, scope, now):
    active = agent.within(scope, lambda entry: entry.is_active(now))
    return UserUsage(scope.user_id, len(active), agent.used(scope))


def stored_amount(agent, wanted):
    scope = wanted.scope
    return agent.used(scope) if wanted.unit == "bytes" else len(agent.within(scope))


def scope_statistics(agent, wanted):
    entries = agent.within(wanted.scope).values()
    active = [entry for entry in entries if entry.is_active(wanted.now)]
    times = [entry.created_at for entry in active]
    return statistics_of(
        [(_state(entry, wanted.now), 1, size_of(entry)) for entry in entries],
        Counter(entry.type for entry in active),
        [(entry.tags, 1) for entry in active],
        oldest=min(times, default=None),
        newest=max(times, default=None),
    )


def _state(entry, now):
    if entry.forgotten_at is not None:
        return FORGOTTEN
    return entry.status if entry.is_present(now) else EXPIRED


def agent_facts(agent, _):
    return values.StoredAgent(agent.model_in_use(), agent.time_zone)


# The log


def position(agent):
    return values.LogPosition(agent.seq, agent.accesses)


def position_and_revision(agent, wanted):
    scope = wanted.scope
    return position(agent), agent.seq if scope.all_users else agent.revisions[scope.user_id]


def changed_rows(agent, wanted):
    changes = agent.since(wanted.seq)
    return None if changes is None else sorted({change.row for change in changes})


def accesses_since(agent, wanted):
    since = wanted.accesses if wanted.accesses <= agent.accesses else 0
    rows = [
        (row, one.last_accessed_at and to_microseconds(one.last_accessed_at), one.access_count)
        for row, one in agent.entries.items()
        if agent.accessed.get(row, 0) > since
    ]
    return values.AccessedRows(position(agent), rows)


def _is_in_state(entry, state):
    if entry.forgotten_at is not None:
        return state is State.DELETED
    return state is (State.ACTIVE if entry.status is MemoryStatus.ACTIVE else State.INACTIVE)


def rows_since(agent, wanted):
    agent.check_model(wanted.model)
    changes = agent.since(wanted.seq)
    if changes is None or (wanted.model and any(one.kind == "switch" for one in changes)):
        return _all_rows(agent, wanted)
    touched = {change.row for change in changes}
    if wanted.with_sensitive:
        touched.update(row for row, entry in agent.entries.items() if entry.sensitive)
    kept = sorted(touched & agent.entries.keys())
    rows = [row for row in kept if _is_in_state(agent.entries[row], wanted.state)]
    others = touched.difference(rows)
    return RowBatch(
        wanted.seq,
        agent.seq,
        agent.records(rows),
        *_vectors_of(agent, rows, wanted.model),
        removed=sorted(others.union(one.row for one in changes if one.kind == "replace")),
        linked=kept,
        links=_links_from(agent, rows, others if wanted.state is State.ACTIVE else ()),
    )


def _all_rows(agent, wanted):
    rows = list(agent.within(agent.everyone, lambda one: _is_in_state(one, wanted.state)))
    sink = wanted.sink or values.CollectedBatch()
    sink.add_records(agent.records(rows))
    embedded, vectors = _vectors_of(agent, rows, wanted.model)
    if vectors is not None:
        sink.add_vectors(np.array(embedded, np.int64), vectors)
    is_active = wanted.state is State.ACTIVE
    links = _links_from(agent, rows, agent.entries) if is_active else []
    return replace(values.full_batch(sink, links), seq=agent.seq)


def _links_from(agent, rows, superseding):
    """Return the links from rows, and of others those of supersession."""
    return [
        (source, target, int(kind), strength)
        for (source, target, kind), (strength, _) in agent.links.items()
        if source in rows or (source in superseding and kind is LinkType.SUPERSEDES)
    ]


# Vectors


def _vectors_of(agent, rows, model):
    """Return all vectors of rows, each with its row; None for no vectors."""
    own = [] if model is None else [(row, agent.vectors_of(row, model[0])) for row in rows]
    pairs = [(row, one) for row, vectors in own if vectors is not None for one in vectors]
    return [row for row, _ in pairs], np.stack([one for _, one in pairs]) if pairs else None


def vectors_of_row(agent, wanted):
    found = agent.vectors_of(wanted.row, wanted.model)
    return np.empty((0, 0), np.float32) if found is None else found


def vectors_by_id(agent, wanted):
    found = {}
    for user_id, entry_id in wanted.entries:
        row, entry = agent.one(agent.user(user_id), entry_id)
        if row is not None:
            state = entry.version, to_microseconds(entry.updated_at)
            vectors = agent.vectors_of(row, wanted.model)
            found[user_id, entry_id] = values.EntryVectors(*state, vectors)
    return found


def need_vectors(agent, wanted):
    return [_needs_vectors(agent, wanted, entry) for entry in wanted.entries]


def _needs_vectors(agent, wanted, entry):
    row, old = agent.one(agent.user(entry.user_id), entry.id)
    if row is None or wanted.on_conflict == "skip":
        return row is None
    has_vectors = agent.vectors_of(row, wanted.model) is not None and not agent.has_zeros(row)
    return not has_vectors or old.content != entry.content


def _has(agent, row, content):
    return row in agent.entries and agent.entries[row].content == content


def add_embeddings(agent, wanted):
    changes, model = [], None
    for (row, content), vectors in zip(wanted.contents.items(), wanted.vectors, strict=True):
        if _has(agent, row, content) and agent.vectors_of(row, wanted.model) is None:
            model = wanted.model, vectors.shape[1]
            agent.check_model(model)
            agent.put_vectors(row, wanted.model, vectors)
            changes.append(agent.change(row, "embed"))
    agent.logged(changes, model)


def _to_embed(agent):
    found = agent.within(agent.everyone, lambda entry: entry.forgotten_at is None)
    return [row for row in found if not agent.has_zeros(row)]


def _lacking(agent, model):
    name, dimensions = model
    found = {row: agent.shadows.get((row, name)) for row in _to_embed(agent)}
    return [row for row, own in found.items() if own is None or own.shape[1] != dimensions]


def count_to_embed(agent, wanted):
    return values.ReembeddingProgress(len(_lacking(agent, wanted.model)), len(_to_embed(agent)))


def rows_to_embed(agent, wanted):
    return [row for row in _lacking(agent, wanted.model) if row > wanted.after][: wanted.limit]


def add_shadow_vectors(agent, wanted):
    same = [row for row, one in wanted.entries.items() if _has(agent, row, one.content)]
    agent.shadows.update({(row, wanted.model): wanted.vectors[row] for row in same})
    return len(same)


def drop_shadow_vectors(agent, wanted):
    return sum(agent.drop_shadows(row, wanted.model) for row in agent.entries)


def switch_model(agent, wanted):
    name, dimensions = wanted.model
    lacking = set(_lacking(agent, wanted.model))
    if len(lacking.difference(wanted.skipped)) > wanted.max_missing:
        return False
    for row, entry in agent.entries.items():
        new = agent.shadows.pop((row, name), None)
        old_name, old = agent.vectors.pop(row, (None, None))
        agent.shadows.pop((row, old_name), None)
        if old is not None and not old[0].any():
            new = np.zeros((1, dimensions), np.float32)
        elif old is not None and not entry.sensitive:
            agent.shadows[row, old_name] = old
        if new is not None and new.shape[1] == dimensions:
            agent.put_vectors(row, name, new)
    firsts = {entry.user_id: row for row, entry in reversed(agent.within(agent.everyone).items())}
    agent.logged([agent.change(row, "switch") for row in sorted(firsts.values())], wanted.model)
    return True


# Writes


def add(agent, wanted):
    rules = add_options(CODEC, wanted)
    rows = encoded(CODEC, wanted.entries, rules.model and rules.model[0])
    return stored_of(CODEC, DictAdding(agent, rules).add(rows), rows)


def _marked(agent, rows, time, kind):
    """Mark entries as deleted at a time, or as there; return their ids."""
    agent.logged([agent.change(row, kind, forgotten_at=time) for row in rows])
    return [agent.entries[row].id for row in rows]


def soft_delete(agent, wanted):
    found = agent.selected(wanted.scope, wanted.criteria)
    before = {row: entry.id for row, entry in found.items() if entry.forgotten_at is not None}
    marked = _marked(agent, [row for row in found if row not in before], wanted.now, "forget")
    return values.MarkedIds(marked, before.values() if wanted.criteria.ids is not None else ())


def restore(agent, wanted):
    def is_due(entry):
        is_late = entry.forgotten_at is not None and entry.forgotten_at >= wanted.oldest
        return is_late and (entry.expires_at is None or entry.expires_at > wanted.now)

    found = agent.selected(wanted.scope, wanted.criteria, is_due)
    return _marked(agent, found, None, "restore")


def _deleted(agent, rows):
    changes = agent.remove(list(rows))
    agent.logged(changes)
    return [UUID(bytes=change.entry_id) for change in changes]


def delete(agent, wanted):
    return _deleted(agent, agent.selected(wanted.scope, wanted.criteria))


def forget_agent(agent, _):
    return _deleted(agent, agent.within(agent.everyone))


def purge(agent, wanted):
    def is_due(entry):
        gone, ended, latest = entry.forgotten_at, entry.expires_at, wanted.expired
        is_ended = ended is not None and latest is not None and ended <= latest
        return is_ended or any(at is not None and at < wanted.oldest for at in (gone, ended))

    return _deleted(agent, agent.within(wanted.scope, is_due))


def _may_change(wanted):
    def may_change(entry):
        is_there = entry.is_present(wanted.now) and entry.status is not MemoryStatus.SUPERSEDED
        return is_there and (wanted.include_archived or entry.status is MemoryStatus.ACTIVE)

    return may_change


def update(agent, wanted):
    rows = list(agent.selected(wanted.scope, wanted.criteria, _may_change(wanted)))
    changes, model, (name, vectors) = [], None, wanted.embedded or (None, None)
    for row in rows:
        before = agent.entries[row]
        after = agent.entries[row] = with_changed(before, wanted.change(before))
        check_size(after)
        is_other = after.content != before.content
        if is_other or wanted.replace_vectors:
            agent.put_vectors(row, name, vectors)
            model = None if vectors is None else (name, vectors.shape[1])
        if is_other or (wanted.replace_vectors and after.hides_content):
            agent.drop_shadows(row)
        kind = "replace" if wanted.replace_vectors else "update"
        changes.append(agent.change(row, kind, size_of(after) - size_of(before)))
    updated = [agent.entries[row] for row in rows]
    write = Write(agent.name, changes, wanted.quotas, to_microseconds(wanted.now))
    gone = evicted(agent, write)
    agent.logged([*changes, *gone], model, wanted.quotas)
    return values.UpdatedEntries(
        [values.UpdatedEntry(entry.id, entry.type) for entry in updated],
        updated[-1] if updated else None,
        [UUID(bytes=one.entry_id) for one in gone],
    )


def set_expiry(agent, wanted):
    expiry = wanted.expires_at
    found = agent.selected(
        wanted.scope,
        wanted.criteria,
        lambda one: one.is_active(wanted.now) and one.expires_at != expiry,
    )
    agent.logged([agent.change(row, "update", expires_at=expiry) for row in found])
    return len(found)


# Links


def links(agent, wanted):
    row, sides = wanted.entry, {"in": [1], "out": [0], "both": [0, 1]}[wanted.direction]
    if isinstance(row, UUID):
        row, _ = agent.one(wanted.scope, row, _present(wanted))
        row = row or 0  # that of no entry
    return [
        read
        for read in agent.linked(wanted.scope, _present(wanted))
        if (row is None or row in [read[side] for side in sides])
        and (wanted.kinds is None or read.link.type in wanted.kinds)
    ]


def link(agent, wanted):
    new, ends = wanted.link, []
    for entry_id in (new.from_id, new.to_id):
        end = agent.one(wanted.scope, entry_id, _present(wanted))
        if end[0] is None:
            raise not_found(entry_id, wanted.scope)
        ends.append(end)
    (source, source_entry), (target, target_entry) = ends
    check_one_user(source_entry.user_id, target_entry.user_id)
    created_at = agent.put_link(source, target, new.type, new.strength, new.created_at)
    agent.logged([agent.change(source, "link")])
    return replace(new, created_at=created_at)


def unlink(agent, wanted):
    (source, _), (target, _) = (
        agent.one(wanted.scope, one) for one in (wanted.from_id, wanted.to_id)
    )
    types = set(LinkType if wanted.kind is None else [wanted.kind]) - {LinkType.SUPERSEDES}
    number = agent.drop_links(lambda *at: at[:2] == (source, target) and at[2] in types)
    agent.logged([agent.change(source, "link")] if number else [])
    return number


def add_links(agent, wanted):
    changes = []
    for new, user_id in wanted.links:
        scope = replace(wanted.scope, user_id=user_id, all_users=False)
        if not wanted.scope.all_users and wanted.scope != scope:
            continue
        (source, entry), (target, _) = agent.one(scope, new.from_id), agent.one(scope, new.to_id)
        if None in (source, target) or (source, target, new.type) in agent.links:
            continue
        if new.type is not LinkType.SUPERSEDES or entry.supersedes == new.to_id:
            agent.put_link(source, target, new.type, new.strength, new.created_at)
            changes.append(agent.change(source, "link"))
    agent.logged(changes)
    return len(changes)
