//! The memories a few links away from several others, each with the score of its best path.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use crate::Error;
use crate::deadline::Deadline;
use crate::memory::links::{Direction, Graph, Hops, MAX_DEPTH};

/// Types of links.
pub const KINDS: usize = 6;

/// The type of a link from a memory to the one that it replaces.
pub const SUPERSEDES: u8 = 3;

/// Most superseded memories that are visited on the way to a head.
const MAX_VERSIONS: usize = 10_000;

const SUCCESSORS: Hops = Hops { direction: Direction::In, kinds: 1 << SUPERSEDES, depth: 1 };

/// A memory whose neighbours are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Start {
    /// The row.
    pub row: i64,
    /// Its score; below 0 it counts as 0.
    pub score: f64,
}

/// The weights of links, and how far they are followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Walk {
    /// Most hops, 1 to [`MAX_DEPTH`]; with 0 superseded starts lead to the heads of their versions.
    pub depth: usize,
    /// Factor of a score at each hop, by the type of the link; a type with 0 is not followed.
    pub decays: [f64; KINDS],
    /// Whether links are also followed from the linked memory to the linking one.
    pub follows_incoming: bool,
}

/// A row that was reached, by the path of the highest score; of several such by the one with the
/// fewest hops, then by that from the smallest row, then by the type of the smallest number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrival {
    /// The score of the start, times decay and strength of each link.
    pub(crate) score: f64,
    pub(crate) depth: usize,
    /// The row before it.
    pub(crate) via: i64,
    /// The type of the last link.
    pub(crate) kind: u8,
}

impl Arrival {
    fn beats(&self, known: &Self) -> bool {
        let order = known.score.total_cmp(&self.score).then(self.depth.cmp(&known.depth));
        order.then(self.via.cmp(&known.via)).then(self.kind.cmp(&known.kind)) == Ordering::Less
    }
}

/// The place of a row in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// One of the selected memories.
    Selected,
    /// Another active memory: outside the scope or the filter, or expired.
    Elsewhere,
    /// No active memory.
    Absent,
}

/// The rows of a request.
pub(crate) trait Rows {
    fn place(&self, row: i64) -> Place;

    /// The better one of two heads first.
    fn compare_heads(&self, one: i64, other: i64) -> Ordering;
}

impl Graph {
    /// The heads of the starts that are absent because others superseded them.
    pub(crate) fn heads(
        &self,
        starts: &[Start],
        rows: &impl Rows,
        deadline: &Deadline,
    ) -> Result<HashMap<i64, Arrival>, Error> {
        let mut heads = Heads { graph: self, rows, known: HashMap::new() };
        let mut found: HashMap<i64, Arrival> = HashMap::new();
        let absent = starts.iter().filter(|start| rows.place(start.row) == Place::Absent);
        for Start { row, score } in absent {
            deadline.check()?;
            let arrival = Arrival { score: score.max(0.0), depth: 0, via: *row, kind: SUPERSEDES };
            let Some(head) = heads.of(*row) else { continue };
            if found.get(&head).is_none_or(|known| arrival.beats(known)) {
                found.insert(head, arrival);
            }
        }
        Ok(found)
    }

    /// The selected rows within some hops of the starts. Starts are neither found nor walked through.
    ///
    /// A row that is absent because another superseded it stands for the head of its chain: the
    /// selected row that superseded it, or that superseded its successor, and so on. Of several heads
    /// the first counts.
    pub(crate) fn neighbours(
        &self,
        starts: &[Start],
        walk: &Walk,
        rows: &impl Rows,
        deadline: &Deadline,
    ) -> Result<HashMap<i64, Arrival>, Error> {
        let mut edge = best_scores(starts);
        let known: HashSet<i64> = edge.iter().map(|(row, _)| *row).collect();
        let mut heads = Heads { graph: self, rows, known: HashMap::new() };
        let mut found: HashMap<i64, Arrival> = HashMap::new();
        for depth in 1..=walk.depth.min(MAX_DEPTH) {
            let mut better: HashMap<i64, Arrival> = HashMap::new();
            for (via, score) in edge {
                deadline.check()?;
                self.each_end(via, &walk.hops(), |end| {
                    let kind = end.kind;
                    let score = score * (walk.decays[usize::from(kind)] * end.strength);
                    let Some(row) = heads.of(end.row).filter(|row| !known.contains(row)) else {
                        return;
                    };
                    let arrival = Arrival { score, depth, via, kind };
                    let other = better.get(&row).or_else(|| found.get(&row));
                    if end.strength > 0.0 && other.is_none_or(|other| arrival.beats(other)) {
                        better.insert(row, arrival);
                    }
                });
            }
            edge = better.iter().map(|(row, arrival)| (*row, arrival.score)).collect();
            found.extend(better);
        }
        Ok(found)
    }
}

impl Walk {
    fn hops(&self) -> Hops {
        let followed = (0..KINDS).filter(|kind| self.decays[*kind] > 0.0);
        let kinds = followed.fold(0, |bits, kind| bits | 1 << kind);
        let direction = if self.follows_incoming { Direction::Both } else { Direction::Out };
        Hops { direction, kinds, depth: self.depth }
    }
}

/// Each row once, with its highest score.
fn best_scores(starts: &[Start]) -> Vec<(i64, f64)> {
    let mut best: HashMap<i64, f64> = HashMap::with_capacity(starts.len());
    for Start { row, score } in starts {
        let known = best.entry(*row).or_insert(0.0);
        *known = known.max(*score);
    }
    best.into_iter().collect()
}

/// The heads of rows, each found once.
struct Heads<'a, R> {
    graph: &'a Graph,
    rows: &'a R,
    known: HashMap<i64, Option<i64>>,
}

impl<R: Rows> Heads<'_, R> {
    /// The row itself if it is selected; the head that superseded it if it is absent.
    fn of(&mut self, row: i64) -> Option<i64> {
        match self.rows.place(row) {
            Place::Selected => Some(row),
            Place::Elsewhere => None,
            Place::Absent => {
                if let Some(head) = self.known.get(&row) {
                    return *head;
                }
                let head = self.successor(row);
                self.known.insert(row, head);
                head
            }
        }
    }

    fn successor(&self, row: i64) -> Option<i64> {
        let (mut left, mut seen) = (vec![row], HashSet::from([row]));
        let mut best: Option<i64> = None;
        while let Some(at) = left.pop() {
            self.graph.each_end(at, &SUCCESSORS, |end| match self.rows.place(end.row) {
                Place::Selected => best = Some(self.better(best, end.row)),
                Place::Absent if seen.len() < MAX_VERSIONS && seen.insert(end.row) => {
                    left.push(end.row);
                }
                Place::Elsewhere | Place::Absent => {}
            });
        }
        best
    }

    fn better(&self, known: Option<i64>, row: i64) -> i64 {
        match known {
            Some(known) if self.rows.compare_heads(known, row) != Ordering::Greater => known,
            _ => row,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::deadline::NEVER;
    use crate::memory::links::Link;

    /// Rows 0 to 7, of which some are absent and some elsewhere; the larger row is the better head.
    struct Given {
        places: Vec<Place>,
    }

    impl Rows for Given {
        fn place(&self, row: i64) -> Place {
            usize::try_from(row).map_or(Place::Absent, |row| self.places[row])
        }

        fn compare_heads(&self, one: i64, other: i64) -> Ordering {
            other.cmp(&one)
        }
    }

    impl Given {
        /// All chains of successors, one by one.
        fn heads(&self, links: &[Link], row: i64, chain: &[i64]) -> Vec<i64> {
            match self.place(row) {
                Place::Selected => vec![row],
                Place::Elsewhere => vec![],
                Place::Absent if chain.contains(&row) => vec![],
                Place::Absent => {
                    let chain = [chain, &[row]].concat();
                    let newer =
                        links.iter().filter(|link| link.kind == SUPERSEDES && link.to == row);
                    newer.flat_map(|link| self.heads(links, link.from, &chain)).collect()
                }
            }
        }

        /// All paths, one by one; those through starts are none.
        fn walked(&self, links: &[Link], starts: &[Start], walk: &Walk) -> HashMap<i64, Arrival> {
            let mut best: HashMap<i64, Arrival> = HashMap::new();
            let begun = starts.iter().map(|start| (start.row, start.score, 0));
            let mut paths: Vec<(i64, f64, usize)> = begun.collect();
            while let Some((via, score, hopped)) = paths.pop() {
                for link in links.iter().filter(|_| hopped < walk.depth) {
                    let factor = walk.decays[usize::from(link.kind)] * link.strength;
                    let ends =
                        [(true, link.from, link.to), (walk.follows_incoming, link.to, link.from)];
                    let followed =
                        ends.iter().filter(|(follows, from, _)| *follows && *from == via);
                    for (_, _, end) in followed.filter(|_| factor > 0.0) {
                        let Some(row) = self.heads(links, *end, &[]).into_iter().max() else {
                            continue;
                        };
                        if starts.iter().any(|start| start.row == row) {
                            continue;
                        }
                        let score = score * factor;
                        let arrival = Arrival { score, depth: hopped + 1, via, kind: link.kind };
                        let known = best.entry(row).or_insert(arrival);
                        if arrival.beats(known) {
                            *known = arrival;
                        }
                        paths.push((row, score, hopped + 1));
                    }
                }
            }
            best
        }
    }

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

    fn places() -> impl Strategy<Value = Vec<Place>> {
        let place = prop::sample::select(vec![
            Place::Selected,
            Place::Selected,
            Place::Absent,
            Place::Elsewhere,
        ]);
        prop::collection::vec(place, 8)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn neighbours_are_those_of_all_paths(
            drawn in prop::collection::vec((0_i64..8, 0_i64..8, 0_u8..6, 0_u8..5), 0..16),
            starts in prop::collection::vec((0_i64..8, 0_u8..5), 1..4),
            decays in prop::array::uniform6(0_u8..3),
            places in places(),
            follows_incoming in any::<bool>(),
            depth in 1_usize..=3,
        ) {
            let links = links_of(&drawn);
            let mut graph = Graph::default();
            graph.set(&[], &links);
            let start = |(row, score): &(i64, u8)| Start { row: *row, score: f64::from(*score) / 4.0 };
            let mut starts: Vec<Start> = starts.iter().map(start).collect();
            // Of a repeated start the best score counts.
            starts.sort_unstable_by(|one, other| {
                one.row.cmp(&other.row).then(other.score.total_cmp(&one.score))
            });
            let walk = Walk { depth, decays: decays.map(|decay| f64::from(decay) / 2.0), follows_incoming };
            let rows = Given { places };
            let found = graph.neighbours(&starts, &walk, &rows, &NEVER).expect("no deadline passes");
            starts.dedup_by_key(|start| start.row);
            prop_assert_eq!(found, rows.walked(&links, &starts, &walk));

            let heads = graph.heads(&starts, &rows, &NEVER).expect("no deadline passes");
            let head_of = |start: &Start| rows.heads(&links, start.row, &[]).into_iter().max();
            let is_absent = |start: &&Start| rows.place(start.row) == Place::Absent;
            let mut best: HashMap<i64, (f64, i64)> = HashMap::new();
            for start in starts.iter().filter(is_absent) {
                if let Some(head) = head_of(start) {
                    let known = best.entry(head).or_insert((start.score, start.row));
                    if start.score > known.0 {
                        *known = (start.score, start.row);
                    }
                }
            }
            let found: HashMap<_, _> =
                heads.iter().map(|(head, at)| (*head, (at.score, at.via))).collect();
            prop_assert_eq!(found, best);
        }
    }
}
