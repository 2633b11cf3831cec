//! Loops over blocks of 16 rows, for every instruction set.
//!
//! They are inlined into functions that are compiled for the instructions, because closures and
//! functions of other crates are not.
#![expect(clippy::inline_always, reason = "a call would leave the instruction set it is made for")]

use crate::collections::append_buffer::Line;
use crate::quantization::coded_rows::{BLOCK_ROWS, CodedRows, Packing, SideBySide, SketchBlock};
use crate::quantization::kernel::{Limit, Rows, TILE_ROWS, Uppers};
use crate::quantization::scalar::RowBound;

/// Blocks of a word of wanted rows.
const TILE_BLOCKS: usize = TILE_ROWS / BLOCK_ROWS;

/// Number of cache lines from the last that are read to those that are prefetched.
const LINES_AHEAD: usize = 64;

/// The same of bounds.
const BOUNDS_AHEAD: usize = 4 * BLOCK_ROWS;

/// Lines to prefetch meanwhile, one after the other, as many as are read.
pub(super) type Ahead = Option<*const Line>;

/// Sixteen values of the rows of a block.
pub(super) type OfBlock<T> = [T; BLOCK_ROWS];

/// The operations of one instruction set on the codes and bounds of a block. A value exists only
/// on CPUs with the instructions.
pub(super) trait Instructions: Copy {
    /// Sixteen sums.
    type Totals;

    /// The products of a plane and the nibbles of each of 16 rows, added up.
    fn nibbles(self, rows: SideBySide<'_, BLOCK_ROWS>, plane: &[i8], ahead: Ahead) -> Self::Totals;
    /// The same of bytes.
    fn bytes(self, rows: SideBySide<'_, BLOCK_ROWS>, plane: &[i8], ahead: Ahead) -> Self::Totals;
    /// The same of sketches.
    fn sketches(self, block: &SketchBlock, plane: &[i8]) -> Self::Totals;
    /// Upper bounds of 16 rows, and which of them reach the limit.
    fn reaching(
        self,
        totals: Self::Totals,
        bounds: &OfBlock<RowBound>,
        limit: &Limit<'_>,
        priors: Option<&OfBlock<f32>>,
        uppers: &mut OfBlock<f32>,
    ) -> u16;
    /// Which of 16 bounds are at least a threshold; NaN is not.
    fn at_least(self, uppers: &OfBlock<f32>, threshold: f32) -> u16;
    fn prefetch(self, line: *const Line);
}

/// [`super::Kernel::bound`].
#[inline(always)]
pub(super) fn bound<I: Instructions>(
    cpu: I,
    codes: &CodedRows,
    rows: Rows<'_>,
    limit: &Limit<'_>,
    uppers: &mut Uppers<'_>,
) {
    let scan = Scan::new(cpu, codes, limit);
    match (codes.packing, rows) {
        (Packing::Sketches, Rows::Listed(_)) => unreachable!("sketches are read in blocks"),
        (Packing::Sketches, _) => scan.bound::<SKETCHES>(rows, uppers),
        (Packing::Nibbles, _) => scan.bound::<NIBBLES>(rows, uppers),
        (Packing::Bytes, _) => scan.bound::<BYTES>(rows, uppers),
    }
}

/// Packings as constants, so that a loop is compiled for each.
const SKETCHES: u8 = Packing::Sketches as u8;
const NIBBLES: u8 = Packing::Nibbles as u8;
const BYTES: u8 = Packing::Bytes as u8;

/// The rows and the limit at hand.
#[derive(Clone, Copy)]
struct Scan<'a, I> {
    cpu: I,
    rows: &'a CodedRows,
    bounds: &'a [RowBound],
    limit: &'a Limit<'a>,
    /// Lines from those that are read to those that are prefetched, beyond those of the rows side by side.
    ahead: usize,
}

impl<'a, I: Instructions> Scan<'a, I> {
    #[inline(always)]
    fn new(cpu: I, rows: &'a CodedRows, limit: &'a Limit<'a>) -> Self {
        let ahead = rows.window() + LINES_AHEAD;
        Self { cpu, rows, bounds: rows.bounds(), limit, ahead }
    }

    #[inline(always)]
    fn plane(self) -> &'a [i8] {
        &self.limit.plane.values
    }

    /// The lines of picked rows, or of a block and what to prefetch meanwhile.
    #[inline(always)]
    fn side_by_side(
        self,
        start: usize,
        picked: Option<&OfBlock<usize>>,
    ) -> (SideBySide<'a, BLOCK_ROWS>, Ahead) {
        if let Some(picked) = picked {
            // They are fetched before.
            return (self.rows.side_by_side(picked), None);
        }
        let (rows, first) = self.rows.of_block(start);
        (rows, Some(first.wrapping_add(self.ahead)))
    }

    /// The products of the rows of a block, added up; `picked` names its rows, the last filled one in
    /// place of those that follow.
    #[inline(always)]
    fn of_block<const PACKING: u8>(
        self,
        start: usize,
        picked: Option<&OfBlock<usize>>,
    ) -> I::Totals {
        if PACKING == SKETCHES {
            let block = self.rows.sketches(start / BLOCK_ROWS);
            for line in block {
                self.cpu.prefetch(std::ptr::from_ref(line).wrapping_add(LINES_AHEAD));
            }
            return self.cpu.sketches(block, self.plane());
        }
        let (rows, ahead) = self.side_by_side(start, picked);
        if PACKING == NIBBLES {
            self.cpu.nibbles(rows, self.plane(), ahead)
        } else {
            self.cpu.bytes(rows, self.plane(), ahead)
        }
    }

    #[inline(always)]
    fn bound<const PACKING: u8>(self, rows: Rows<'_>, uppers: &mut Uppers<'_>) {
        match rows {
            Rows::InOrder { first, wanted } => {
                self.bound_in_order::<PACKING>(first, wanted, uppers);
            }
            Rows::Listed(listed) => self.bound_listed::<PACKING>(listed, uppers),
        }
    }

    #[inline(always)]
    fn bound_in_order<const PACKING: u8>(
        self,
        first: usize,
        wanted: &[u64],
        uppers: &mut Uppers<'_>,
    ) {
        let (uppers, reaching) = (&mut *uppers.values, &mut *uppers.reaching);
        let (whole, rest) = self.bounds[first..].as_chunks();
        for (tile, (wanted, reaching)) in wanted.iter().zip(&mut *reaching).enumerate() {
            *reaching = 0;
            for (part, bounds) in
                whole.iter().skip(tile * TILE_BLOCKS).take(TILE_BLOCKS).enumerate()
            {
                let shift = part * BLOCK_ROWS;
                if (wanted >> shift) as u16 != 0 {
                    let position = tile * TILE_ROWS + shift;
                    self.prefetch_bounds(first + position);
                    let totals = self.of_block::<PACKING>(first + position, None);
                    let found = self.reaching(totals, first, position, bounds, uppers);
                    *reaching |= u64::from(found) << shift & wanted;
                }
            }
        }
        let position = whole.len() * BLOCK_ROWS;
        let wanted =
            wanted.get(position / TILE_ROWS).map_or(0, |word| word >> (position % TILE_ROWS));
        if wanted != 0 {
            // The last row stands in place of those that follow.
            let last = rest.len() - 1;
            let picked = sixteen(|at| first + position + at.min(last));
            let totals = self.of_block::<PACKING>(first + position, Some(&picked));
            let bounds = &sixteen(|at| rest[at.min(last)]);
            let found = u64::from(self.reaching(totals, first, position, bounds, uppers));
            reaching[position / TILE_ROWS] |= (found & wanted) << (position % TILE_ROWS);
        }
    }

    /// Upper bounds of the rows of a block at a position, counted from row `first` on.
    #[inline(always)]
    fn reaching(
        self,
        totals: I::Totals,
        first: usize,
        position: usize,
        bounds: &OfBlock<RowBound>,
        uppers: &mut [f32],
    ) -> u16 {
        let values = self.limit.prior.map(|prior| &prior.values[first + position..]);
        let priors = values.map(|values| values.first_chunk().expect("whole blocks have priors"));
        let uppers = uppers[position..].first_chunk_mut().expect("room for whole blocks");
        self.cpu.reaching(totals, bounds, self.limit, priors, uppers)
    }

    /// Prefetch the bounds of a block a little ahead of the one at hand.
    #[inline(always)]
    fn prefetch_bounds(self, start: usize) {
        let bounds = self.bounds.as_ptr().wrapping_add(start + BOUNDS_AHEAD);
        self.cpu.prefetch(bounds.cast());
        self.cpu.prefetch(bounds.wrapping_add(BLOCK_ROWS / 2).cast());
    }

    #[inline(always)]
    fn bound_listed<const PACKING: u8>(self, listed: &[u32], uppers: &mut Uppers<'_>) {
        let (uppers, reaching) = (&mut *uppers.values, &mut *uppers.reaching);
        reaching.fill(0);
        self.prefetch_rows(listed);
        let blocks = listed.chunks(BLOCK_ROWS).zip(uppers.as_chunks_mut().0);
        for (block, (part, uppers)) in blocks.enumerate() {
            let position = block * BLOCK_ROWS;
            self.prefetch_rows(listed.get(position + BLOCK_ROWS..).unwrap_or(&[]));
            let picked = sixteen(|at| part[at.min(part.len() - 1)] as usize);
            let bounds = sixteen(|at| self.bounds[picked[at]]);
            let priors = self.limit.prior.map(|prior| sixteen(|at| prior.values[picked[at]]));
            let totals = self.of_block::<PACKING>(0, Some(&picked));
            let found = self.cpu.reaching(totals, &bounds, self.limit, priors.as_ref(), uppers);
            let found = u64::from(found & u16::MAX >> (BLOCK_ROWS - part.len()));
            reaching[position / TILE_ROWS] |= found << (position % TILE_ROWS);
        }
    }

    /// Prefetch the next block of listed rows.
    #[inline(always)]
    fn prefetch_rows(self, listed: &[u32]) {
        for row in listed.iter().take(BLOCK_ROWS) {
            self.cpu.prefetch(self.bounds.as_ptr().wrapping_add(*row as usize).cast());
            for line in self.rows.lines_of(*row as usize) {
                self.cpu.prefetch(line);
            }
        }
    }
}

/// [`super::Kernel::at_least`].
#[inline(always)]
pub(super) fn at_least<I: Instructions>(
    cpu: I,
    uppers: &[f32],
    threshold: f32,
    reaching: &mut [u64],
) {
    for (word, uppers) in reaching.iter_mut().zip(uppers.chunks(TILE_ROWS)) {
        *word = 0;
        for (part, uppers) in uppers.as_chunks().0.iter().enumerate() {
            *word |= u64::from(cpu.at_least(uppers, threshold)) << (part * BLOCK_ROWS);
        }
    }
}

/// Sixteen values, written in a loop because array closures are not inlined into vector functions.
#[inline(always)]
fn sixteen<T: Copy + Default>(of: impl Fn(usize) -> T) -> OfBlock<T> {
    let mut values = [T::default(); BLOCK_ROWS];
    for (at, value) in values.iter_mut().enumerate() {
        *value = of(at);
    }
    values
}
