//! Coarse scan: every candidate row is bounded by its shortest codes, then rows pass on, best
//! first.
//!
//! After each group of segments the frontier, the rows with the largest bounds so far, is scored,
//! so that the threshold is nearly final before any other row is bounded again: in the order of the
//! scan more than twice as many rows would pass (`docs/project/lab/kernel.md`).

use std::cell::RefCell;
use std::cmp::Reverse;
use std::ops::{Range, RangeInclusive};

use crate::bits::{positions, rows_of};
use crate::deadline::Deadline;
use crate::quantization::kernel::{Kernel, Rows, TILE_ROWS, Uppers};
use crate::search::cascade::{BoundedRow, Cascade, Place};
use crate::search::formula::ScannedSegment;
use crate::search::prepared_query::Stage;
use crate::search::selection::SegmentRows;
use crate::storage::segment::{SEGMENT_ROWS, SegmentView};

/// Size of the frontier: twice the limit, and at least one row in so many, within bounds
/// (`docs/project/lab/kernel.md`).
const FRONTIER_SHARE: usize = 4096;
const MIN_FRONTIER: RangeInclusive<usize> = 16..=64;

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
    /// The bounds of the group of pieces at hand, and buffers: which of them reach a limit, as
    /// bits, and positions among them.
    uppers: Vec<f32>,
    reaching: Vec<u64>,
    positions: Vec<u32>,
    /// The rows of each piece that may be among the best.
    kept: Vec<Vec<BoundedRow>>,
}

/// The candidate rows of a segment.
pub(crate) struct Piece<'a> {
    /// At the first stage of its rows.
    pub(crate) scanned: ScannedSegment<'a>,
    listed: Option<&'a [u32]>,
    /// One mask for every 64 rows, where they are not listed.
    words: Vec<u64>,
    /// Number of positions before it, in all and in its group.
    first: usize,
    at: usize,
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
        let words = match listed {
            Some(_) => Vec::new(),
            None => candidate_words(view, allowed).collect(),
        };
        Some(Self { scanned: scanned.at(stage), listed, words, first: 0, at: 0 })
    }

    pub(crate) fn rows(&self) -> Rows<'_> {
        self.listed.map_or(Rows::InOrder { first: 0, wanted: &self.words }, Rows::Listed)
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
    fn of(k: usize, rows: usize) -> Self {
        let min = (rows / FRONTIER_SHARE).clamp(*MIN_FRONTIER.start(), *MIN_FRONTIER.end());
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

fn return_buffer(buffer: Vec<f32>) {
    BUFFERS.with_borrow_mut(|buffers| {
        // A group ends with the segment that fills it, so it may be larger by one segment.
        if buffers.len() < KEPT_BUFFERS && buffer.len() <= GROUP_BOUNDS + SEGMENT_ROWS {
            buffers.push(buffer);
        }
    });
}

impl<'a> CoarseScan<'a> {
    /// A scan of a map of `rows` rows for answers of `k` each; without a limit where it is `None`.
    pub(crate) fn new(
        kernel: &'a dyn Kernel,
        cascades: Vec<Cascade<'a>>,
        k: Option<usize>,
        rows: usize,
        is_long: bool,
    ) -> Self {
        let answers = cascades.into_iter().map(|cascade| Answer::new(cascade, k, rows)).collect();
        Self { kernel, answers, pieces: Vec::new(), is_long, places: 0, grouped: 0 }
    }

    /// Bound a segment's candidate rows by their shortest codes.
    pub(crate) fn scan(&mut self, scanned: ScannedSegment<'a>, allowed: Option<&'a SegmentRows>) {
        let Some(piece) = Piece::of(scanned, allowed, self.is_long) else { return };
        let piece = Piece { first: self.places, at: self.places - self.grouped, ..piece };
        let bounds = piece.rows().bounds();
        self.places += bounds;
        for answer in &mut self.answers {
            answer.reserve(self.places - self.grouped);
        }
        let tiles = bounds.div_ceil(TILE_ROWS);
        let mut first = 0;
        while first < tiles {
            let some = (piece.first / TILE_ROWS + first).clamp(1, MOST_TILES);
            let end = tiles.min(first + some);
            for answer in &mut self.answers {
                answer.scan(&piece, first..end);
            }
            first = end;
        }
        self.pieces.push(piece);
        if (self.places - self.grouped) * self.answers.len() >= GROUP_BOUNDS {
            self.end_group();
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
    fn new(cascade: Cascade<'a>, k: Option<usize>, rows: usize) -> Self {
        let frontier = Frontier::of(k.unwrap_or(0), rows);
        Self {
            cascade,
            frontier,
            uppers: BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default(),
            reaching: Vec::new(),
            positions: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Reserve so many bounds. Bounds of an earlier group are never read: only those of
    /// candidate rows are.
    fn reserve(&mut self, bounds: usize) {
        if self.uppers.len() < bounds {
            self.uppers.resize(bounds, 0.0);
        }
    }

    /// Bound some tiles, and offer those of their rows that reach it to the frontier.
    fn scan(&mut self, piece: &Piece<'a>, tiles: Range<usize>) {
        let first = tiles.start * TILE_ROWS;
        let rows = piece.rows().tiles(tiles);
        let values = &mut self.uppers[piece.at + first..][..rows.bounds()];
        self.reaching.resize(values.len().div_ceil(TILE_ROWS), 0);
        let floor = self.frontier.floor;
        let uppers = Uppers { values: &mut *values, reaching: &mut self.reaching };
        self.cascade.bound(&piece.scanned, rows, floor, uppers);
        for at in rows_of(&self.reaching) {
            self.frontier.offer(values[at as usize], piece.first + first + at as usize);
        }
    }

    /// Score the leading rows of a group; it begins at place `first`.
    fn score_frontier(&mut self, pieces: &[Piece<'a>], first: usize) {
        self.frontier.since(first, &mut self.positions);
        let mut rest = self.positions.as_slice();
        for piece in pieces.iter().filter(|piece| piece.first >= first) {
            let all = piece.rows();
            let end = piece.at + all.bounds();
            let (of_piece, others) =
                rest.split_at(rest.partition_point(|place| (*place as usize) < end));
            let row = |place: &u32| {
                self.uppers[*place as usize] = DONE;
                (piece.scanned, all.row(*place as usize - piece.at))
            };
            let places: Vec<_> = of_piece.iter().map(row).collect();
            self.cascade.score(&places);
            rest = others;
        }
    }

    /// Keep the other rows of a group that may be among the best for later.
    fn keep_others(&mut self, kernel: &dyn Kernel, pieces: &[Piece<'a>], first: usize) {
        self.cascade.adopt_threshold();
        let min = self.cascade.min_upper();
        for piece in pieces.iter().filter(|piece| piece.first >= first) {
            let rows = piece.rows();
            let uppers = &self.uppers[piece.at..][..rows.bounds()];
            self.reaching.resize(uppers.len().div_ceil(TILE_ROWS), 0);
            kernel.at_least(uppers, min, &mut self.reaching);
            let tiles = self.reaching.iter_mut().enumerate();
            tiles.for_each(|(tile, word)| *word &= rows.wanted(tile));
            let kept =
                |at: u32| BoundedRow { upper: uppers[at as usize], row: rows.row(at as usize) };
            self.kept.push(rows_of(&self.reaching).map(kept).collect());
        }
    }

    /// Take on the rows of piece number `at` that may still be among the best.
    fn resolve(&mut self, piece: &Piece<'a>, at: usize) {
        self.cascade.adopt_threshold();
        let min = self.cascade.min_upper();
        let mut rows = std::mem::take(&mut self.kept[at]);
        rows.retain(|bounded| bounded.upper >= min);
        self.cascade.take(&piece.scanned, rows);
    }
}

/// The masks of candidate rows, one for every 64 rows.
pub(crate) fn candidate_words(
    view: &SegmentView,
    allowed: Option<&SegmentRows>,
) -> impl Iterator<Item = u64> {
    let of_tile = move |(at, live)| allowed.map_or(live, |rows| live & rows.words[at]);
    view.live_words().enumerate().map(of_tile)
}

pub(crate) fn candidate_places<'a>(
    scanned: ScannedSegment<'a>,
    allowed: Option<&SegmentRows>,
) -> Vec<Place<'a>> {
    let rows = positions(candidate_words(scanned.view, allowed));
    rows.map(|row| (scanned, row as u32)).collect()
}
