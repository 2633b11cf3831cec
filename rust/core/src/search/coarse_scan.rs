//! Coarse scan: every candidate row is bounded by its shortest codes, then rows pass on, best
//! first.
//!
//! After each group of segments the frontier, the rows with the largest bounds so far, is scored,
//! so that the threshold is nearly final before any other row is bounded again: in the order of the
//! scan more than twice as many rows would pass (`docs/lab/kernel.md`).

use std::cell::RefCell;
use std::cmp::Reverse;

use crate::bits::set_bits;
use crate::deadline::Deadline;
use crate::quantization::coded_rows::BLOCK_ROWS;
use crate::quantization::kernel::{Kernel, TILE_ROWS};
use crate::search::cascade::{BoundedRow, Cascade};
use crate::search::formula::ScannedSegment;
use crate::search::prepared_query::Stage;
use crate::search::selection::SegmentRows;
use crate::storage::segment::{SEGMENT_ROWS, SegmentView};

/// Size of the frontier: twice the limit, and at least this many rows in a short scan, whose bounds
/// are tight, and in a long one (`docs/lab/kernel.md`).
const MIN_FRONTIER: usize = 16;
const MIN_FRONTIER_OF_LONG: usize = 64;

/// Bounds of all answers after which the frontier is scored: as many as stay in the cache.
const GROUP_BOUNDS: usize = 1 << 18;

/// Buffers of bounds that are kept for later searches.
const KEPT_BUFFERS: usize = 8;

/// Most tiles bounded at a time, at first fewer, which tell what bounds are large: the codes of so
/// many stay in the cache for other queries.
const MOST_TILES: usize = 16;

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
    kept: Vec<Vec<BoundedRow>>,
}

/// The candidate rows of a segment.
pub(crate) struct Piece<'a> {
    pub(crate) scanned: ScannedSegment<'a>,
    /// The first stage of its rows.
    pub(crate) stage: Stage,
    pub(crate) rows: Rows<'a>,
    /// Number of positions before it, in all and in its group.
    first: usize,
    at: usize,
}

pub(crate) enum Rows<'a> {
    /// Bounds are in the order of the rows; one mask for every 64 of them.
    InOrder(Vec<u64>),
    /// Bounds are in the order of this list.
    Listed(&'a [u32]),
}

impl Rows<'_> {
    /// Number of bounds, those of rows between the candidates included.
    pub(crate) fn bounds(&self) -> usize {
        match self {
            Self::InOrder(words) => words.len() * TILE_ROWS,
            Self::Listed(rows) => rows.len().next_multiple_of(BLOCK_ROWS),
        }
    }

    /// The row of a bound, if it is a candidate.
    pub(crate) fn row(&self, position: u32) -> Option<u32> {
        match self {
            Self::InOrder(words) => {
                let word = words[position as usize / TILE_ROWS];
                (word >> (position as usize % TILE_ROWS) & 1 == 1).then_some(position)
            }
            Self::Listed(rows) => rows.get(position as usize).copied(),
        }
    }
}

impl<'a> Piece<'a> {
    /// The candidate rows of a segment; `None` where there are none.
    pub(crate) fn of(
        scanned: ScannedSegment<'a>,
        allowed: Option<&'a SegmentRows>,
        is_long: bool,
    ) -> Option<Self> {
        let view = scanned.view;
        if allowed.map_or(view.live_count(), |rows| rows.count) == 0 {
            return None;
        }
        let listed = allowed.and_then(|rows| rows.listed.as_deref());
        let stage = match &view.sketch {
            Some(_) if is_long && listed.is_none() => Stage::Sketch,
            _ if is_long => Stage::Nibbles,
            _ => Stage::Bytes,
        };
        let in_order = || Rows::InOrder(candidate_words(view, allowed).collect());
        let rows = listed.map_or_else(in_order, Rows::Listed);
        Some(Self { scanned, stage, rows, first: 0, at: 0 })
    }
}

/// The frontier: rows with the largest bounds so far.
struct Frontier {
    wanted: usize,
    /// Up to twice as many: a bound in the upper half, as a number of the same order, and its place
    /// in the lower.
    entries: Vec<u64>,
    /// The bound that a row must reach to be among them.
    floor: f32,
}

impl Frontier {
    fn of(k: usize, is_long: bool) -> Self {
        let min = if is_long { MIN_FRONTIER_OF_LONG } else { MIN_FRONTIER };
        let wanted = min.max(2 * k);
        Self { wanted, entries: Vec::with_capacity(2 * wanted), floor: f32::NEG_INFINITY }
    }

    fn offer(&mut self, upper: f32, place: usize) {
        if upper < self.floor {
            return;
        }
        let bits = upper.to_bits();
        let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        self.entries.push(u64::from(ordered) << 32 | place as u64);
        if self.entries.len() == 2 * self.wanted {
            self.cut();
        }
    }

    /// Keep the largest alone.
    fn cut(&mut self) {
        if self.entries.len() > self.wanted {
            let at = self.wanted - 1;
            let (_, min, _) = self.entries.select_nth_unstable_by_key(at, |entry| Reverse(*entry));
            let ordered = (*min >> 32) as u32;
            let bits = if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered };
            self.floor = f32::from_bits(bits);
            self.entries.truncate(self.wanted);
        }
    }

    /// Those of the largest whose place is `first` or later, as positions from there in their order.
    fn since(&mut self, first: usize, positions: &mut Vec<u32>) {
        self.cut();
        let places = self.entries.iter().map(|entry| entry & u64::from(u32::MAX));
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
        if buffers.len() < KEPT_BUFFERS && buffer.len() <= GROUP_BOUNDS + SEGMENT_ROWS {
            buffers.push(buffer);
        }
    });
}

impl<'a> CoarseScan<'a> {
    /// A scan for answers of `k` rows each; without a limit where it is `None`.
    pub(crate) fn new(
        kernel: &'a dyn Kernel,
        cascades: Vec<Cascade<'a>>,
        k: Option<usize>,
        is_long: bool,
    ) -> Self {
        let answers =
            cascades.into_iter().map(|cascade| Answer::new(cascade, k, is_long)).collect();
        Self { kernel, answers, pieces: Vec::new(), is_long, places: 0, grouped: 0 }
    }

    /// Bound a segment's candidate rows by their shortest codes.
    pub(crate) fn scan(&mut self, scanned: ScannedSegment<'a>, allowed: Option<&'a SegmentRows>) {
        let Some(piece) = Piece::of(scanned, allowed, self.is_long) else { return };
        let piece = Piece { first: self.places, at: self.places - self.grouped, ..piece };
        self.places += piece.rows.bounds();
        for answer in &mut self.answers {
            answer.reserve(self.places - self.grouped);
        }
        match &piece.rows {
            Rows::InOrder(words) => self.scan_in_order(&piece, words),
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

    /// Bound some tiles at a time for all answers.
    fn scan_in_order(&mut self, piece: &Piece<'a>, words: &[u64]) {
        let mut first = 0;
        while first < words.len() {
            let tiles = (piece.first / TILE_ROWS + first).clamp(1, MOST_TILES);
            let some = &words[first..words.len().min(first + tiles)];
            for answer in &mut self.answers {
                answer.scan(piece, first * TILE_ROWS, some);
            }
            first += some.len();
        }
    }

    /// Score the leading rows of the pieces since the last group, and keep those of the others
    /// that may still be among the best.
    fn end_group(&mut self) {
        for answer in &mut self.answers {
            answer.score_frontier(&self.pieces, self.grouped);
            answer.keep_others(self.kernel, &self.pieces, self.grouped);
        }
        self.grouped = self.places;
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
    fn new(cascade: Cascade<'a>, k: Option<usize>, is_long: bool) -> Self {
        let frontier = Frontier::of(k.unwrap_or(0), is_long);
        Self { cascade, frontier, uppers: take_buffer(), positions: Vec::new(), kept: Vec::new() }
    }

    /// Reserve so many bounds. Bounds of an earlier group are never read: only those of
    /// candidate rows are.
    fn reserve(&mut self, bounds: usize) {
        if self.uppers.len() < bounds {
            self.uppers.resize(bounds, 0.0);
        }
    }

    fn scan(&mut self, piece: &Piece<'a>, first: usize, words: &[u64]) {
        let (scanned, stage, floor) = (&piece.scanned, piece.stage, self.frontier.floor);
        let uppers = &mut self.uppers[piece.at + first..][..words.len() * TILE_ROWS];
        self.positions.clear();
        self.cascade.bound(scanned, stage, (first, words), floor, uppers, &mut self.positions);
        self.offer(piece, first);
    }

    fn scan_listed(&mut self, piece: &Piece<'a>, listed: &[u32]) {
        for (first, listed) in (0..).step_by(TILE_ROWS).zip(listed.chunks(TILE_ROWS)) {
            let (scanned, stage, floor) = (&piece.scanned, piece.stage, self.frontier.floor);
            let bounds = listed.len().next_multiple_of(BLOCK_ROWS);
            let uppers = &mut self.uppers[piece.at + first..][..bounds];
            self.positions.clear();
            self.cascade.bound_listed(scanned, stage, listed, floor, uppers, &mut self.positions);
            self.offer(piece, first);
        }
    }

    /// Offer the rows whose positions from `first` on are noted to the frontier.
    fn offer(&mut self, piece: &Piece<'a>, first: usize) {
        for position in &self.positions {
            let at = first + *position as usize;
            self.frontier.offer(self.uppers[piece.at + at], piece.first + at);
        }
    }

    /// Score the leading rows of a group; it begins at place `first`.
    fn score_frontier(&mut self, pieces: &[Piece<'a>], first: usize) {
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
            let rows: Vec<u32> = of_piece.iter().filter_map(row).collect();
            self.cascade.score(&piece.scanned, &rows);
            rest = others;
        }
    }

    /// Keep the other rows of a group that may be among the best for later.
    fn keep_others(&mut self, kernel: &dyn Kernel, pieces: &[Piece<'a>], first: usize) {
        self.cascade.adopt_threshold();
        let min = self.cascade.min_upper();
        for piece in pieces.iter().filter(|piece| piece.first >= first) {
            let uppers = &self.uppers[piece.at..][..piece.rows.bounds()];
            self.positions.clear();
            kernel.positions_reaching(uppers, min, &mut self.positions);
            let kept = |position: &u32| {
                let row = piece.rows.row(*position)?;
                Some(BoundedRow { upper: uppers[*position as usize], row })
            };
            self.kept.push(self.positions.iter().filter_map(kept).collect());
        }
    }

    /// Take on the rows of piece number `at` that may still be among the best.
    fn resolve(&mut self, piece: &Piece<'a>, at: usize) {
        self.cascade.adopt_threshold();
        let min = self.cascade.min_upper();
        let mut rows = std::mem::take(&mut self.kept[at]);
        rows.retain(|bounded| bounded.upper >= min);
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
