//! The links between memories, by row, and the memories within a few hops.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::collections::cow_vec::BlockVec;
use crate::collections::id_map::IdMap;
use crate::collections::plain;
use crate::deadline::Deadline;

/// Most links on a path.
pub const MAX_DEPTH: usize = 3;

/// Of lists that were replaced, so many links may be left lying, and as many as are in use.
const MIN_VACANT: usize = 1024;

/// A link from one memory to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The row it leads from.
    pub from: i64,
    /// The row it leads to.
    pub to: i64,
    /// The type of link; below 32.
    pub kind: u8,
    /// From 0 to 1.
    pub strength: f64,
}

/// Which way links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the linking memory to the linked ones.
    Out,
    /// Against that.
    In,
    /// Either way.
    Both,
}

/// The kinds of links on a path, in the order they are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Path {
    kinds: [u8; MAX_DEPTH],
    len: u8,
}

impl Path {
    /// The kinds, the first hop first.
    pub fn kinds(&self) -> &[u8] {
        &self.kinds[..usize::from(self.len)]
    }

    fn with(mut self, kind: u8) -> Self {
        self.kinds[usize::from(self.len)] = kind;
        self.len += 1;
        self
    }
}

/// A row that was reached, by the path of the largest product of strengths; of several such the
/// shortest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reached {
    pub(crate) strength: f64,
    pub(crate) path: Path,
}

/// The links that a hop follows.
#[derive(Debug, Clone, Copy)]
pub struct Hops {
    /// Which way.
    pub direction: Direction,
    /// The bits of the kinds that are followed.
    pub kinds: u32,
    /// Most hops, 1 to [`MAX_DEPTH`].
    pub depth: usize,
}

/// The other end of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct End {
    pub(super) row: i64,
    pub(super) strength: f64,
    pub(super) kind: u8,
}

/// Links, cheap to copy; a copy never changes with the original.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Graph {
    outgoing: Lists,
    incoming: Lists,
}

impl Graph {
    /// Replace all links that lead from these rows.
    pub(crate) fn set(&mut self, rows: &[i64], links: &[Link]) {
        if links.is_empty() && rows.iter().all(|row| self.outgoing.is_empty(*row)) {
            return;
        }
        let mut by_row: HashMap<i64, Vec<End>> = rows.iter().map(|row| (*row, vec![])).collect();
        for link in links {
            let end = End { row: link.to, strength: link.strength, kind: link.kind };
            by_row.entry(link.from).or_default().push(end);
        }
        let mut changes: HashMap<i64, (Vec<End>, Vec<End>)> = HashMap::new();
        for (row, ends) in &by_row {
            let back = |end: &End| End { row: *row, ..*end };
            let old = self.outgoing.of(*row);
            for end in old.iter().filter(|end| !ends.contains(end)) {
                changes.entry(end.row).or_default().0.push(back(end));
            }
            for end in ends.iter().filter(|end| !old.contains(end)) {
                changes.entry(end.row).or_default().1.push(back(end));
            }
        }
        for (row, ends) in by_row {
            self.outgoing.set(row, &ends);
        }
        for (row, (gone, new)) in changes {
            let mut ends = self.incoming.of(row);
            ends.retain(|end| !gone.contains(end));
            ends.extend(new);
            self.incoming.set(row, &ends);
        }
    }

    /// Remove all links from a row and to it.
    pub(crate) fn forget(&mut self, row: i64) {
        self.set(&[row], &[]);
        for source in self.incoming.of(row) {
            let mut ends = self.outgoing.of(source.row);
            ends.retain(|end| end.row != row);
            self.outgoing.set(source.row, &ends);
        }
        self.incoming.set(row, &[]);
    }

    /// The rows within some hops of a row, itself left out; only those that `is_there` are walked
    /// through.
    pub(crate) fn reached(
        &self,
        row: i64,
        hops: &Hops,
        is_there: impl Fn(i64) -> bool,
        deadline: &Deadline,
    ) -> Result<HashMap<i64, Reached>, Error> {
        let mut found: HashMap<i64, Reached> = HashMap::new();
        let mut edge = vec![(row, Reached { strength: 1.0, path: Path::default() })];
        for _ in 0..hops.depth.min(MAX_DEPTH) {
            let mut better: HashMap<i64, Reached> = HashMap::new();
            for (from, reached) in edge {
                deadline.check()?;
                self.each_end(from, hops, |end| {
                    let strength = reached.strength * end.strength;
                    let known = better.get(&end.row).or_else(|| found.get(&end.row));
                    let is_better = known.is_none_or(|known| strength > known.strength);
                    if end.row != row && is_better && is_there(end.row) {
                        let path = reached.path.with(end.kind);
                        better.insert(end.row, Reached { strength, path });
                    }
                });
            }
            found.extend(better.iter().map(|(row, reached)| (*row, *reached)));
            edge = better.into_iter().collect();
            // Of equal paths the first one met is kept: in the order of rows it is always the same.
            edge.sort_unstable_by_key(|(row, _)| *row);
        }
        Ok(found)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.outgoing.bytes() + self.incoming.bytes()
    }

    /// Visit the other ends of a row's links, in one order for equal graphs on each side.
    pub(super) fn each_end(&self, row: i64, hops: &Hops, mut visit: impl FnMut(End)) {
        let (follows_out, follows_in) =
            (hops.direction != Direction::In, hops.direction != Direction::Out);
        let sides = [(follows_out, &self.outgoing), (follows_in, &self.incoming)];
        for (_, lists) in sides.iter().filter(|(follows, _)| *follows) {
            lists.each(row, |end| {
                if hops.kinds >> end.kind & 1 == 1 {
                    visit(end);
                }
            });
        }
    }
}

/// Where a list lies.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    len: usize,
}

/// A list of ends for each row, one after the other; a list that changes is rewritten at the end.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(into = "StoredLists", try_from = "StoredLists")]
struct Lists {
    spans: IdMap<Span>,
    ends: BlockVec<End>,
    vacant: usize,
}

/// Rows in ascending order, and the ends of all of them, one list after the other.
#[derive(Default, Serialize, Deserialize)]
struct StoredLists {
    #[serde(with = "plain")]
    rows: Vec<i64>,
    #[serde(with = "plain")]
    lengths: Vec<u64>,
    #[serde(with = "plain")]
    ends: Vec<i64>,
    #[serde(with = "plain")]
    strengths: Vec<f64>,
    #[serde(with = "plain")]
    kinds: Vec<u8>,
}

impl From<Lists> for StoredLists {
    fn from(lists: Lists) -> Self {
        let mut stored = Self::default();
        for row in lists.spans.ids() {
            let before = stored.ends.len();
            lists.each(row, |End { row, strength, kind }| {
                stored.ends.push(row);
                stored.strengths.push(strength);
                stored.kinds.push(kind);
            });
            stored.rows.push(row);
            stored.lengths.push((stored.ends.len() - before) as u64);
        }
        stored
    }
}

impl TryFrom<StoredLists> for Lists {
    type Error = &'static str;

    fn try_from(stored: StoredLists) -> Result<Self, Self::Error> {
        let StoredLists { rows, lengths, ends, strengths, kinds } = stored;
        let total = lengths.iter().fold(0_u64, |sum, length| sum.saturating_add(*length));
        let counts = [ends.len() as u64, strengths.len() as u64, kinds.len() as u64];
        let are_kinds = kinds.iter().all(|kind| u32::from(*kind) < u32::BITS);
        if counts != [total; 3] || rows.len() != lengths.len() || !are_kinds {
            return Err("lists of links that do not fit together");
        }
        let starts = lengths.iter().scan(0, |end, length| {
            let start = *end;
            *end += *length as usize;
            Some(Span { start, len: *length as usize })
        });
        let spans: Vec<(i64, Span)> = rows.into_iter().zip(starts).collect();
        let spans = IdMap::of_ascending(&spans).ok_or("a row with two lists of links")?;
        let ends = ends.into_iter().zip(strengths).zip(kinds);
        let ends = ends.map(|((row, strength), kind)| End { row, strength, kind });
        Ok(Self { spans, ends: ends.collect(), vacant: 0 })
    }
}

impl Lists {
    fn each(&self, row: i64, visit: impl FnMut(End)) {
        let Some(Span { start, len }) = self.spans.get(row) else { return };
        (start..start + len).filter_map(|at| self.ends.get(at).copied()).for_each(visit);
    }

    fn is_empty(&self, row: i64) -> bool {
        self.spans.get(row).is_none()
    }

    fn of(&self, row: i64) -> Vec<End> {
        let mut ends = Vec::new();
        self.each(row, |end| ends.push(end));
        ends
    }

    fn set(&mut self, row: i64, ends: &[End]) {
        let mut ends = ends.to_vec();
        ends.sort_unstable_by_key(|end| (end.row, end.kind));
        if self.of(row) == ends {
            return;
        }
        let replaced = if ends.is_empty() {
            self.spans.remove(row)
        } else {
            self.spans.insert(row, Span { start: self.ends.len(), len: ends.len() })
        };
        for end in ends {
            self.ends.push(end);
        }
        self.vacant += replaced.map_or(0, |span| span.len);
        if self.vacant > MIN_VACANT.max(self.ends.len() - self.vacant) {
            self.rewrite();
        }
    }

    fn rewrite(&mut self) {
        let mut fresh = Self::default();
        for row in self.spans.ids() {
            let ends = self.of(row);
            fresh.spans.insert(row, Span { start: fresh.ends.len(), len: ends.len() });
            for end in ends {
                fresh.ends.push(end);
            }
        }
        *self = fresh;
    }

    fn bytes(&self) -> usize {
        self.spans.bytes() + self.ends.bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::deadline::NEVER;

    const EVERY_KIND: u32 = u32::MAX;

    fn links_of(drawn: &[(i64, i64, u8, u8)]) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        for (from, to, kind, strength) in drawn {
            let is_new =
                !links.iter().any(|link| (link.from, link.to, link.kind) == (*from, *to, *kind));
            if from != to && is_new {
                let strength = f64::from(*strength) / 4.0;
                links.push(Link { from: *from, to: *to, kind: *kind, strength });
            }
        }
        links
    }

    /// All paths, one by one.
    #[expect(clippy::float_cmp, reason = "the same products in the same order")]
    fn walked(links: &[Link], row: i64, hops: &Hops, gone: i64) -> HashMap<i64, (f64, usize)> {
        let mut best: HashMap<i64, (f64, usize)> = HashMap::new();
        let mut paths = vec![(row, 1.0, 0)];
        while let Some((at, strength, hopped)) = paths.pop() {
            if hopped > 0 && at != row {
                let known = best.entry(at).or_insert((strength, hopped));
                if strength > known.0 || strength == known.0 && hopped < known.1 {
                    *known = (strength, hopped);
                }
            }
            if hopped == hops.depth {
                continue;
            }
            for link in links.iter().filter(|link| hops.kinds >> link.kind & 1 == 1) {
                let ends = [
                    (hops.direction != Direction::In, link.from, link.to),
                    (hops.direction != Direction::Out, link.to, link.from),
                ];
                for (follows, from, to) in ends {
                    if follows && from == at && to != row && to != gone {
                        paths.push((to, strength * link.strength, hopped + 1));
                    }
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn hops_reach_what_all_paths_reach(
            before in prop::collection::vec((0_i64..7, 0_i64..7, 0_u8..3, 0_u8..5), 0..20),
            after in prop::collection::vec((0_i64..7, 0_i64..7, 0_u8..3, 0_u8..5), 0..20),
            direction in prop::sample::select(vec![Direction::Out, Direction::In, Direction::Both]),
            kinds in 0_u32..8,
            depth in 1_usize..=3,
            gone in 0_i64..9,
        ) {
            let (before, after) = (links_of(&before), links_of(&after));
            let rows: Vec<i64> = (0..7).collect();
            let mut graph = Graph::default();
            graph.set(&rows, &before);
            let older = graph.clone();
            graph.set(&rows, &after);
            let hops = Hops { direction, kinds, depth };
            for (graph, links) in [(&older, &before), (&graph, &after)] {
                for row in 0..7 {
                    let found = graph.reached(row, &hops, |row| row != gone, &NEVER);
                    let found: HashMap<i64, (f64, usize)> = found
                        .expect("no deadline passes")
                        .into_iter()
                        .map(|(row, reached)| (row, (reached.strength, reached.path.kinds().len())))
                        .collect();
                    prop_assert_eq!(found, walked(links, row, &hops, gone));
                }
            }
        }

        #[test]
        fn changing_some_rows_leaves_the_links_of_others(
            first in prop::collection::vec((0_i64..7, 0_i64..7, 0_u8..3, 0_u8..5), 0..20),
            second in prop::collection::vec((0_i64..7, 0_i64..7, 0_u8..3, 0_u8..5), 0..20),
            changed in prop::collection::vec(0_i64..7, 0..4),
        ) {
            let is_changed = |link: &Link| changed.contains(&link.from);
            let first = links_of(&first);
            let second: Vec<Link> = links_of(&second).into_iter().filter(is_changed).collect();
            let mut graph = Graph::default();
            graph.set(&[], &first);
            graph.set(&changed, &second);
            let mut whole = Graph::default();
            let kept = first.iter().filter(|link| !is_changed(link)).chain(&second).copied();
            whole.set(&[], &kept.collect::<Vec<_>>());
            let hops = Hops { direction: Direction::Both, kinds: EVERY_KIND, depth: 1 };
            for row in 0..7 {
                let found = graph.reached(row, &hops, |_| true, &NEVER);
                prop_assert_eq!(found, whole.reached(row, &hops, |_| true, &NEVER));
            }
        }
    }

    #[test]
    fn lists_that_were_replaced_do_not_pile_up() {
        let mut graph = Graph::default();
        for turn in 0..20_000 {
            let strength = f64::from(turn % 7) / 7.0;
            graph.set(&[1], &[Link { from: 1, to: 2, kind: 0, strength }]);
        }
        assert!(graph.outgoing.ends.len() < 2 * MIN_VACANT + 2);
        assert!(graph.incoming.ends.len() < 2 * MIN_VACANT + 2);
    }
}
