//! The neighbours of memories that were found, by links.

use std::cmp::Ordering;

use crate::Error;
use crate::columns::{Ask, Columns, Inside, Tie};
use crate::memory::neighbours::{Arrival, Place, Rows, Start, Walk};

use super::MemoryIndex;
use super::request::NeighbourHit;

impl MemoryIndex {
    /// The candidates that links lead to from the starts, each with the score of its best path: the
    /// highest score first, then the fewest hops, then the newest, then the smallest id, then the
    /// first user. A link to a superseded memory leads to the head of its versions; of several the
    /// one that was changed last counts, then the smallest id.
    ///
    /// Starts are never found. One that is outside the scope leads nowhere; the filter need not
    /// select it. Without any hop superseded starts alone lead somewhere: to the heads of their
    /// versions.
    ///
    /// # Errors
    ///
    /// When the deadline passes: the best path may be among those that were not followed.
    pub fn neighbours(
        &self,
        ask: &Ask<'_>,
        starts: &[Start],
        walk: &Walk,
        k: usize,
    ) -> Result<Vec<NeighbourHit>, Error> {
        let memories = &self.store.snapshot().memories;
        let columns = &memories.columns;
        let of_scope = Ask { scope: ask.scope, now: ask.now, ..Ask::default() };
        let within_scope = Selection { columns, inside: columns.inside(&of_scope) };
        let is_within = |start: &&Start| within_scope.place(start.row) == Place::Selected;
        let selection = Selection { columns, inside: columns.inside(ask) };
        let reached = if walk.depth == 0 {
            memories.graph.heads(starts, &selection, ask.deadline)?
        } else {
            let starts: Vec<Start> = starts.iter().filter(is_within).copied().collect();
            memories.graph.neighbours(&starts, walk, &selection, ask.deadline)?
        };
        let place = |(row, arrival): (i64, Arrival)| {
            let docid = columns.docid_of(row)?;
            let tie = columns.tie_of(docid);
            let Arrival { score, depth, via, kind } = arrival;
            let accessed = columns.access_of(docid).unwrap_or_default();
            Some((NeighbourHit { row, id: tie.id, score, kind, via, depth, accessed }, tie))
        };
        Ok(best(reached.into_iter().filter_map(place).collect(), k, |one, other| {
            other.score.total_cmp(&one.score).then(one.depth.cmp(&other.depth))
        }))
    }
}

/// The first k hits in an order; of equal ones the first by their ties.
pub(super) fn best<Hit>(
    mut hits: Vec<(Hit, Tie<'_>)>,
    k: usize,
    order: impl Fn(&Hit, &Hit) -> Ordering,
) -> Vec<Hit> {
    hits.sort_unstable_by(|(one, one_tie), (other, other_tie)| {
        order(one, other).then_with(|| one_tie.cmp(other_tie))
    });
    hits.truncate(k);
    hits.into_iter().map(|(hit, _)| hit).collect()
}

/// The selected rows of a request.
struct Selection<'a> {
    columns: &'a Columns,
    inside: Inside<'a>,
}

impl Rows for Selection<'_> {
    fn place(&self, row: i64) -> Place {
        match self.columns.docid_of(row) {
            Some(docid) if self.inside.has(docid) => Place::Selected,
            Some(_) => Place::Elsewhere,
            None => Place::Absent,
        }
    }

    fn compare_heads(&self, one: i64, other: i64) -> Ordering {
        let key = |row: i64| {
            let docid = self.columns.docid_of(row)?;
            Some((self.columns.updated_at(docid)?, self.columns.tie_of(docid)))
        };
        let (one, other) = (key(one), key(other));
        let (Some((one_at, one_tie)), Some((other_at, other_tie))) = (one, other) else {
            return Ordering::Equal;
        };
        other_at
            .cmp(&one_at)
            .then(one_tie.id.cmp(&other_tie.id))
            .then_with(|| one_tie.cmp(&other_tie))
    }
}
