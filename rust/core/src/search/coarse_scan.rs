//! Coarse scan: every candidate row is bounded by its shortest codes, then rows pass on, best
//! first.
//!
//! After each group of segments the frontier, the rows with the largest bounds so far, passes
//! through all stages, so that the threshold is nearly final before any other row is bounded again:
//! in the order of the scan more than twice as many rows would pass (`docs/lab/kernel.md`).

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::bits::set_bits;
use crate::deadline::Deadline;
use crate::quantization::kernel::{EIGHT, Kernel, Limit, TILE_ROWS, Uppers};
use crate::search::cascade::{Cascade, MIN_MANY, NO_UPPERS, ScannedSegment, tiles_of};
use crate::search::prepared_query::{PreparedQuery, Stage};
use crate::search::selection::SegmentRows;
use crate::storage::segment::{SEGMENT_ROWS, SegmentView};

/// Size of the frontier: twice the limit, and at least this many rows in a short scan, whose bounds
/// are tight, and in a long one (`docs/lab/kernel.md`).
const MIN_FRONTIER: usize = 32;
const MIN_FRONTIER_OF_LONG: usize = 64;

/// Bounds of all answers after which the frontier passes on: as many as stay in the cache.
const GROUP_BOUNDS: usize = 1 << 18;

/// In place of the bound of a row that has been taken: it reaches no threshold, not even minus
/// infinity.
const DONE: f32 = f32::NAN;

/// The scan of some segments for some answers.
pub(crate) struct CoarseScan<'a> {
    kernel: &'a dyn Kernel,
    answers: Vec<Answer<'a>>,
    pieces: Vec<Piece<'a>>,
    /// Whether the scan is long enough for nibbles and sketches.
    is_long: bool,
    /// Rows scanned so far, those between the candidate rows included.
    places: usize,
    /// How many of them were in earlier groups.
    grouped: usize,
}

/// One answer: its cascade, and the rows that may belong to it.
struct Answer<'a> {
    cascade: Cascade<'a>,
    frontier: Frontier,
    /// The bounds of the group of pieces at hand, and a buffer of positions among them.
    uppers: Vec<f32>,
    positions: Vec<u32>,
    /// The rows of each piece that may be among the best.
    kept: Vec<Vec<Kept>>,
}

/// A row that passes on if its bound reaches the threshold.
#[derive(Clone, Copy)]
struct Kept {
    upper: f32,
    row: u32,
}

/// The candidate rows of a segment.
struct Piece<'a> {
    scanned: ScannedSegment<'a>,
    stage: Stage,
    /// Number of positions before it, in all and in its group.
    first: usize,
    at: usize,
    rows: Rows<'a>,
}

enum Rows<'a> {
    /// Bounds are in the order of the rows; one mask for every 64 of them.
    InOrder(Vec<u64>),
    /// Bounds are in the order of this list.
    Listed(&'a [u32]),
}

impl Rows<'_> {
    fn bounds(&self) -> usize {
        match self {
            Self::InOrder(words) => words.len() * TILE_ROWS,
            Self::Listed(rows) => rows.len().next_multiple_of(EIGHT),
        }
    }

    /// The row of a bound, if it is a candidate.
    fn row(&self, position: u32) -> Option<u32> {
        match self {
            Self::InOrder(words) => {
                let word = words[position as usize / TILE_ROWS];
                (word >> (position as usize % TILE_ROWS) & 1 == 1).then_some(position)
            }
            Self::Listed(rows) => rows.get(position as usize).copied(),
        }
    }
}

/// The frontier: rows with the largest bounds so far.
struct Frontier {
    wanted: usize,
    /// A bound in the upper half, as a number of the same order, and its place in the lower.
    heap: BinaryHeap<Reverse<u64>>,
    /// The bound that a row must reach to be among them.
    floor: f32,
}

impl Frontier {
    fn of(k: usize, is_long: bool) -> Self {
        let min = if is_long { MIN_FRONTIER_OF_LONG } else { MIN_FRONTIER };
        let wanted = min.max(2 * k);
        let heap = BinaryHeap::with_capacity(wanted.min(4096));
        Self { wanted, heap, floor: f32::NEG_INFINITY }
    }

    fn offer(&mut self, upper: f32, place: usize) {
        let bits = upper.to_bits();
        let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        let entry = Reverse(u64::from(ordered) << 32 | place as u64);
        if self.heap.len() < self.wanted {
            self.heap.push(entry);
        } else if let Some(mut min) = self.heap.peek_mut()
            && entry < *min
        {
            *min = entry;
        }
        if self.heap.len() == self.wanted
            && let Some(Reverse(min)) = self.heap.peek()
        {
            let ordered = (min >> 32) as u32;
            let bits = if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered };
            self.floor = f32::from_bits(bits);
        }
    }

    /// Those of these rows whose place is `first` or later, as positions from there in their order.
    fn since(&self, first: usize, positions: &mut Vec<u32>) {
        let places = self.heap.iter().map(|Reverse(entry)| entry & u64::from(u32::MAX));
        positions.clear();
        positions.extend(
            places.filter(|place| *place >= first as u64).map(|place| place as u32 - first as u32),
        );
        positions.sort_unstable();
    }
}

thread_local! {
    /// Buffers of bounds that the last search of this thread left: fresh memory costs more to touch
    /// than the bounds cost to write.
    static BUFFERS: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

fn take_buffer() -> Vec<f32> {
    BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

fn return_buffer(buffer: Vec<f32>) {
    BUFFERS.with_borrow_mut(|buffers| {
        // A group ends with the segment that fills it, so it may be larger by one segment.
        if buffers.len() < EIGHT && buffer.len() <= GROUP_BOUNDS + SEGMENT_ROWS {
            buffers.push(buffer);
        }
    });
}

impl<'a> CoarseScan<'a> {
    pub(crate) fn new(
        kernel: &'a dyn Kernel,
        cascades: Vec<Cascade<'a>>,
        k: usize,
        is_long: bool,
    ) -> Self {
        let answers =
            cascades.into_iter().map(|cascade| Answer::new(cascade, k, is_long)).collect();
        Self { kernel, answers, pieces: Vec::new(), is_long, places: 0, grouped: 0 }
    }

    /// Bound a segment's candidate rows by their shortest codes.
    pub(crate) fn scan(&mut self, scanned: ScannedSegment<'a>, allowed: Option<&'a SegmentRows>) {
        let count = allowed.map_or(scanned.view.live_count(), |rows| rows.count);
        if count == 0 {
            return;
        }
        let rows = match allowed {
            Some(SegmentRows { listed: Some(listed), .. }) => Rows::Listed(listed),
            _ => Rows::InOrder(candidate_words(scanned.view, allowed).collect()),
        };
        let stage = self.first_stage(scanned.view);
        let at = self.places - self.grouped;
        let piece = Piece { scanned, stage, first: self.places, at, rows };
        self.places += piece.rows.bounds();
        for answer in &mut self.answers {
            answer.reserve(self.places - self.grouped);
        }
        match &piece.rows {
            Rows::InOrder(words) if self.is_many() => self.scan_for_many(&piece, words),
            Rows::InOrder(words) => {
                for answer in &mut self.answers {
                    answer.scan(&piece, words);
                }
            }
            Rows::Listed(rows) => {
                for answer in &mut self.answers {
                    answer.scan_listed(&piece, rows);
                }
            }
        }
        self.pieces.push(piece);
        if (self.places - self.grouped) * self.answers.len() >= GROUP_BOUNDS {
            self.end_group();
        }
    }

    /// Take the leading rows of the pieces since the last group on, and keep those of the others
    /// that may still be among the best.
    fn end_group(&mut self) {
        for answer in &mut self.answers {
            answer.take_frontier(&self.pieces, self.grouped);
            answer.keep_others(self.kernel, &self.pieces, self.grouped);
        }
        self.grouped = self.places;
    }

    fn first_stage(&self, view: &SegmentView) -> Stage {
        match (self.is_long, &view.sketch) {
            (true, Some(_)) => Stage::Sketch,
            (true, None) => Stage::Nibbles,
            (false, _) => Stage::Bytes,
        }
    }

    fn is_many(&self) -> bool {
        (MIN_MANY..=EIGHT).contains(&self.answers.len())
            && self.answers.iter().all(|answer| answer.cascade.prepared_queries.len() == 1)
    }

    /// Bound each row for up to eight answers at once.
    fn scan_for_many(&mut self, piece: &Piece<'a>, words: &[u64]) {
        let rows = piece.stage.rows(piece.scanned.view);
        for tile in tiles_of(words) {
            let limit = |answer: &Answer<'a>| {
                answer.limit(&answer.cascade.prepared_queries[0], piece.stage, &piece.scanned)
            };
            let count = self.answers.len();
            let limits: [_; EIGHT] =
                std::array::from_fn(|at| limit(&self.answers[at.min(count - 1)]));
            let mut uppers = [[0.0; TILE_ROWS]; EIGHT];
            let masks = self.kernel.bound_many(rows, tile, &limits[..count], &mut uppers);
            for ((answer, uppers), mask) in self.answers.iter_mut().zip(&uppers).zip(masks) {
                answer.note(piece, tile.number * TILE_ROWS, uppers, mask);
            }
        }
    }

    /// Take the rows that may still be among the best on from stage to stage; the frontier alone after
    /// the deadline.
    pub(crate) fn resolve(mut self, deadline: &Deadline) -> Vec<Cascade<'a>> {
        self.end_group();
        for (at, piece) in self.pieces.iter().enumerate() {
            if deadline.is_past() {
                break;
            }
            for answer in &mut self.answers {
                answer.resolve(piece, at);
            }
        }
        let finish = |answer: Answer<'a>| {
            return_buffer(answer.uppers);
            answer.cascade
        };
        self.answers.into_iter().map(finish).collect()
    }
}

impl<'a> Answer<'a> {
    fn new(cascade: Cascade<'a>, k: usize, is_long: bool) -> Self {
        let frontier = Frontier::of(k, is_long);
        Self { cascade, frontier, uppers: take_buffer(), positions: Vec::new(), kept: Vec::new() }
    }

    /// Reserve so many bounds. Bounds of an earlier group are never read: only those of
    /// candidate rows are.
    fn reserve(&mut self, bounds: usize) {
        if self.uppers.len() < bounds {
            self.uppers.resize(bounds, 0.0);
        }
    }

    /// The bound that a row must reach to join the frontier.
    fn limit<'b>(
        &self,
        prepared: &'b PreparedQuery,
        stage: Stage,
        scanned: &ScannedSegment<'b>,
    ) -> Limit<'b>
    where
        'a: 'b,
    {
        self.cascade.limit(prepared, stage, scanned).raised_to(self.frontier.floor)
    }

    fn scan(&mut self, piece: &Piece<'a>, words: &[u64]) {
        let (mut uppers, mut of_each) = ([0.0; TILE_ROWS], NO_UPPERS);
        for tile in tiles_of(words) {
            let (scanned, stage, floor) = (&piece.scanned, piece.stage, self.frontier.floor);
            let mask = self.cascade.bound(scanned, stage, tile, floor, &mut uppers, &mut of_each);
            self.note(piece, tile.number * TILE_ROWS, &uppers, mask);
        }
    }

    fn scan_listed(&mut self, piece: &Piece<'a>, listed: &[u32]) {
        for first in (0..listed.len()).step_by(TILE_ROWS) {
            let mut uppers = [0.0; TILE_ROWS];
            let (listed, floor) = (&listed[first..], self.frontier.floor);
            let (scanned, stage) = (&piece.scanned, piece.stage);
            let mask = self.cascade.bound_listed(scanned, stage, listed, floor, &mut uppers);
            self.note(piece, first, &uppers, mask);
        }
    }

    /// Keep the bounds of rows from position `first` on, and the leading of them.
    fn note(&mut self, piece: &Piece<'a>, first: usize, uppers: &Uppers, mask: u64) {
        let target = &mut self.uppers[piece.at + first..];
        let count = target.len().min(TILE_ROWS);
        target[..count].copy_from_slice(&uppers[..count]);
        for bit in set_bits(mask) {
            self.frontier.offer(uppers[bit], piece.first + first + bit);
        }
    }

    /// Take the leading rows of a group on to the end; it begins at place `first`.
    fn take_frontier(&mut self, pieces: &[Piece<'a>], first: usize) {
        self.frontier.since(first, &mut self.positions);
        let mut rest = self.positions.as_slice();
        for piece in pieces.iter().filter(|piece| piece.first >= first) {
            let end = piece.at + piece.rows.bounds();
            let (of_piece, others) =
                rest.split_at(rest.partition_point(|place| (*place as usize) < end));
            let row = |place: &u32| {
                self.uppers[*place as usize] = DONE;
                piece.rows.row(*place - piece.at as u32)
            };
            let rows = of_piece.iter().filter_map(row).collect();
            self.cascade.take(&piece.scanned, piece.stage, rows);
            rest = others;
        }
    }

    /// Keep the other rows of a group that may be among the best for later.
    fn keep_others(&mut self, kernel: &dyn Kernel, pieces: &[Piece<'a>], first: usize) {
        self.cascade.adopt_threshold();
        for piece in pieces.iter().filter(|piece| piece.first >= first) {
            let min = self.cascade.min_upper(piece.stage, &piece.scanned);
            let uppers = &self.uppers[piece.at..][..piece.rows.bounds()];
            self.positions.clear();
            kernel.positions_reaching(uppers, min, &mut self.positions);
            let kept = |position: &u32| {
                let row = piece.rows.row(*position)?;
                Some(Kept { upper: uppers[*position as usize], row })
            };
            self.kept.push(self.positions.iter().filter_map(kept).collect());
        }
    }

    /// Take on the rows of piece number `at` that may still be among the best.
    fn resolve(&mut self, piece: &Piece<'a>, at: usize) {
        self.cascade.adopt_threshold();
        let min = self.cascade.min_upper(piece.stage, &piece.scanned);
        let reaching = self.kept[at].iter().filter(|kept| kept.upper >= min);
        let rows = reaching.map(|kept| kept.row).collect();
        self.cascade.take(&piece.scanned, piece.stage, rows);
    }
}

/// The masks of candidate rows, one for every 64 rows.
pub(crate) fn candidate_words(
    view: &SegmentView,
    allowed: Option<&SegmentRows>,
) -> impl Iterator<Item = u64> {
    view.live_words()
        .enumerate()
        .map(move |(at, (_, live))| allowed.map_or(live, |rows| live & rows.words[at]))
}

pub(crate) fn candidate_rows(
    view: &SegmentView,
    allowed: Option<&SegmentRows>,
) -> impl Iterator<Item = usize> {
    candidate_words(view, allowed)
        .enumerate()
        .flat_map(|(at, word)| set_bits(word).map(move |bit| at * TILE_ROWS + bit))
}
