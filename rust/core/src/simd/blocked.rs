//! The loops that all vector kernels share: eight rows against one limit, or one row against eight.
//!
//! They are always inlined, so that each kernel compiles them for its own instructions.
#![expect(
    clippy::inline_always,
    reason = "else they would be compiled without vector instructions"
)]

use super::{EIGHT, Limit, TILE_ROWS, Tile, Uppers, eight};
use crate::bits::set_bits;
use crate::collections::append_buffer::Line;
use crate::quantization::row_blocks::{CodedRows, Packing, RowLines};
use crate::quantization::scalar::{LINE_COMPONENTS, RowBound};

/// Number of cache lines that a scan prefetches, of codes and of bounds.
const LINES_AHEAD: usize = 48;

/// How many rows ahead listed rows are fetched: enough to hide memory, few enough to stay in L1.
const ROWS_AHEAD: usize = 16;

/// The operations of one instruction set on a line of codes and on eight bounds. A value exists
/// only on CPUs with the instructions.
pub(super) trait Instructions: Copy {
    /// Partial sums of one row's products.
    type Sum: Copy;
    /// The components of a plane that go with one line of nibbles, and of bytes.
    type NibbleParts: Copy;
    type ByteParts: Copy;
    /// Eight sums.
    type Sums: Copy;
    /// The bounds of eight rows, side by side.
    type Bounds;

    fn zero(self) -> Self::Sum;
    fn nibble_parts(self, parts: &[i8; LINE_COMPONENTS]) -> Self::NibbleParts;
    fn byte_parts(self, parts: &[i8; 64]) -> Self::ByteParts;
    fn add_nibbles(self, sum: Self::Sum, line: &Line, parts: Self::NibbleParts) -> Self::Sum;
    fn add_bytes(self, sum: Self::Sum, line: &Line, parts: Self::ByteParts) -> Self::Sum;
    /// Lane `i` of the result is the total of `sums[i]`.
    fn totals(self, sums: [Self::Sum; EIGHT]) -> Self::Sums;
    /// The transposed matrix.
    fn exchanged(self, totals: [Self::Sums; EIGHT]) -> [Self::Sums; EIGHT];
    /// Add the totals of a block's eight rows with each of one to eight planes, by plane, and
    /// return true; false if these instructions are no faster so than row by row.
    #[inline(always)]
    fn add_by_plane(
        self,
        _totals: &mut [Self::Sums; EIGHT],
        _packing: Packing,
        _block: &[Line],
        _planes: &[&[i8]],
    ) -> bool {
        false
    }
    fn bounds(self, bounds: &[RowBound; EIGHT]) -> Self::Bounds;
    /// Upper bounds of eight rows, and which of them reach the limit.
    fn rows_reaching(
        self,
        totals: Self::Sums,
        bounds: &Self::Bounds,
        limit: &Limit<'_>,
        priors: Option<&[f32; EIGHT]>,
        uppers: &mut [f32; EIGHT],
    ) -> u64;
    /// Which of eight bounds are at least a threshold; NaN is not.
    fn at_least(self, uppers: &[f32; EIGHT], threshold: f32) -> u64;
    fn prefetch(self, line: *const Line);
}

/// [`super::Kernel::bound`].
#[inline(always)]
pub(super) fn bound<I: Instructions>(
    cpu: I,
    rows: &CodedRows,
    tile: Tile,
    limit: &Limit<'_>,
    uppers: &mut Uppers,
) -> u64 {
    let filled = rows.bounds().len();
    let mut mask = 0;
    for (block, uppers) in uppers.as_chunks_mut().0.iter_mut().enumerate() {
        if tile.wanted_of(block) == 0 {
            continue;
        }
        let start = tile.start_of(block);
        // A row's codes are there before its bound, so a block may lack the last one's.
        let bits = if start + EIGHT <= filled
            && let Some(lines) = rows.block(start / EIGHT)
        {
            bound_block(cpu, rows, lines, start, limit, uppers)
        } else {
            let count = EIGHT.min(filled - start);
            bound_picked::<true, _>(cpu, rows, eight_from(start, count), count, limit, uppers)
        };
        mask |= bits << (block * EIGHT);
    }
    mask & tile.wanted
}

/// [`super::Kernel::bound_listed`].
#[inline(always)]
pub(super) fn bound_listed<I: Instructions>(
    cpu: I,
    rows: &CodedRows,
    listed: &[u32],
    limit: &Limit<'_>,
    uppers: &mut Uppers,
) -> u64 {
    let mut mask = 0;
    let blocks = uppers.as_chunks_mut().0;
    for (part, (here, uppers)) in listed.chunks(EIGHT).zip(blocks).enumerate() {
        let ahead = listed.get(part * EIGHT + ROWS_AHEAD..).unwrap_or(&[]);
        for row in ahead.iter().take(EIGHT) {
            prefetch_row(cpu, rows, *row as usize);
        }
        let picked = eight(|at| here[at.min(here.len() - 1)] as usize);
        let bits = bound_picked::<false, _>(cpu, rows, picked, here.len(), limit, uppers);
        mask |= bits << (part * EIGHT);
    }
    mask
}

/// [`super::Kernel::bound_many`]: codes are unpacked once for all limits.
#[inline(always)]
pub(super) fn bound_many<I: Instructions>(
    cpu: I,
    rows: &CodedRows,
    tile: Tile,
    limits: &[Limit<'_>],
    uppers: &mut [Uppers; EIGHT],
) -> [u64; EIGHT] {
    let mut masks = [0; EIGHT];
    let filled = rows.bounds().len();
    let planes = eight(|query| &*limits[query.min(limits.len() - 1)].plane.values);
    let planes = &planes[..limits.len()];
    for block in 0..TILE_ROWS / EIGHT {
        if tile.wanted_of(block) == 0 {
            continue;
        }
        let start = tile.start_of(block);
        let picked = eight_from(start, EIGHT.min(filled - start));
        let whole = rows.block(start / EIGHT);
        if let Some(lines) = whole {
            fetch_ahead(cpu, lines, &rows.bounds()[start]);
        }
        let mut by_limit = [cpu.totals([cpu.zero(); EIGHT]); EIGHT];
        if !whole.is_some_and(|lines| cpu.add_by_plane(&mut by_limit, rows.packing, lines, planes))
        {
            by_limit = totals_row_by_row(cpu, rows, picked, planes);
        }
        let bounds = cpu.bounds(&eight(|row| rows.bounds()[picked[row]]));
        for (at, limit) in limits.iter().enumerate() {
            let priors = limit.prior.map(|prior| eight(|row| prior.values[picked[row]]));
            let uppers = &mut uppers[at].as_chunks_mut().0[block];
            let bits = cpu.rows_reaching(by_limit[at], &bounds, limit, priors.as_ref(), uppers);
            masks[at] |= bits << (block * EIGHT) & tile.wanted;
        }
    }
    masks
}

/// The totals of eight rows with each plane, by plane, one row after the other.
#[inline(always)]
fn totals_row_by_row<I: Instructions>(
    cpu: I,
    rows: &CodedRows,
    picked: [usize; EIGHT],
    planes: &[&[i8]],
) -> [I::Sums; EIGHT] {
    let planes = eight(|query| planes[query.min(planes.len() - 1)]);
    let mut by_row = [cpu.totals([cpu.zero(); EIGHT]); EIGHT];
    for (totals, row) in by_row.iter_mut().zip(picked) {
        *totals = match rows.packing {
            Packing::Nibbles => nibble_totals_of_row(cpu, rows.row(row), &planes),
            Packing::Bytes => byte_totals_of_row(cpu, rows.row(row), &planes),
        };
    }
    cpu.exchanged(by_row)
}

/// Prefetch the lines after a block, as the loops over one limit do line by line.
#[inline(always)]
fn fetch_ahead<I: Instructions>(cpu: I, block: &[Line], bound: &RowBound) {
    fetch_bounds_ahead(cpu, block, bound);
    for line in block {
        cpu.prefetch(std::ptr::from_ref(line).wrapping_add(LINES_AHEAD));
    }
}

/// Fetch the bounds of the rows whose codes are fetched next; those of a block fill a line.
#[inline(always)]
fn fetch_bounds_ahead<I: Instructions>(cpu: I, block: &[Line], bound: &RowBound) {
    let blocks_ahead = LINES_AHEAD.div_ceil(block.len());
    cpu.prefetch(std::ptr::from_ref(bound).wrapping_add(EIGHT * blocks_ahead).cast());
}

/// [`super::Kernel::positions_reaching`].
#[inline(always)]
pub(super) fn positions_reaching<I: Instructions>(
    cpu: I,
    uppers: &[f32],
    threshold: f32,
    positions: &mut Vec<u32>,
) {
    for (at, eight) in uppers.as_chunks().0.iter().enumerate() {
        let bits = cpu.at_least(eight, threshold);
        if bits != 0 {
            positions.extend(set_bits(bits).map(|bit| (at * EIGHT + bit) as u32));
        }
    }
}

/// [`super::Kernel::prefetch_row`].
#[inline(always)]
pub(super) fn prefetch_row<I: Instructions>(cpu: I, rows: &CodedRows, row: usize) {
    cpu.prefetch(rows.bounds().as_ptr().wrapping_add(row).cast());
    for line in rows.addresses(row) {
        cpu.prefetch(line);
    }
}

/// Eight consecutive row numbers, repeating the last where fewer are wanted.
#[inline(always)]
fn eight_from(first: usize, count: usize) -> [usize; EIGHT] {
    eight(|at| first + at.min(count - 1))
}

#[inline(always)]
fn bound_block<I: Instructions>(
    cpu: I,
    rows: &CodedRows,
    block: &[Line],
    start: usize,
    limit: &Limit<'_>,
    uppers: &mut [f32; EIGHT],
) -> u64 {
    let lines = BlockLines(block.as_chunks().0.iter());
    let bounds: &[RowBound; EIGHT] =
        rows.bounds()[start..].first_chunk().expect("a whole block has eight bounds");
    fetch_bounds_ahead(cpu, block, &bounds[0]);
    let priors = limit
        .prior
        .map(|prior| prior.values[start..].first_chunk().expect("every row has a prior"));
    let totals = totals::<true, _>(cpu, rows.packing, lines, limit);
    cpu.rows_reaching(totals, &cpu.bounds(bounds), limit, priors, uppers)
}

/// Bound the first `count` of eight rows named by number; with `AHEAD` the rows after them are
/// prefetched.
#[inline(always)]
fn bound_picked<const AHEAD: bool, I: Instructions>(
    cpu: I,
    rows: &CodedRows,
    picked: [usize; EIGHT],
    count: usize,
    limit: &Limit<'_>,
    uppers: &mut [f32; EIGHT],
) -> u64 {
    let lines = rows.eight(picked);
    let bounds = rows.bounds();
    let bounds = eight(|at| bounds[picked[at]]);
    let priors = limit.prior.map(|prior| eight(|at| prior.values[picked[at]]));
    let totals = totals::<AHEAD, _>(cpu, rows.packing, lines, limit);
    let bits = cpu.rows_reaching(totals, &cpu.bounds(&bounds), limit, priors.as_ref(), uppers);
    bits & (u64::MAX >> (TILE_ROWS - count))
}

#[inline(always)]
fn totals<'a, const AHEAD: bool, I: Instructions>(
    cpu: I,
    packing: Packing,
    lines: impl Iterator<Item = [&'a Line; EIGHT]>,
    limit: &Limit<'_>,
) -> I::Sums {
    match packing {
        Packing::Nibbles => nibble_totals::<AHEAD, _>(cpu, lines, &limit.plane.values),
        Packing::Bytes => byte_totals::<AHEAD, _>(cpu, lines, &limit.plane.values),
    }
}

#[inline(always)]
fn nibble_totals<'a, const AHEAD: bool, I: Instructions>(
    cpu: I,
    lines: impl Iterator<Item = [&'a Line; EIGHT]>,
    plane: &[i8],
) -> I::Sums {
    let mut sums = [cpu.zero(); EIGHT];
    for (lines, parts) in lines.zip(plane.as_chunks().0) {
        let parts = cpu.nibble_parts(parts);
        for (sum, line) in sums.iter_mut().zip(lines) {
            if AHEAD {
                cpu.prefetch(std::ptr::from_ref(line).wrapping_add(LINES_AHEAD));
            }
            *sum = cpu.add_nibbles(*sum, line, parts);
        }
    }
    cpu.totals(sums)
}

#[inline(always)]
fn byte_totals<'a, const AHEAD: bool, I: Instructions>(
    cpu: I,
    lines: impl Iterator<Item = [&'a Line; EIGHT]>,
    plane: &[i8],
) -> I::Sums {
    let mut sums = [cpu.zero(); EIGHT];
    for (lines, parts) in lines.zip(plane.as_chunks().0) {
        let parts = cpu.byte_parts(parts);
        for (sum, line) in sums.iter_mut().zip(lines) {
            if AHEAD {
                cpu.prefetch(std::ptr::from_ref(line).wrapping_add(LINES_AHEAD));
            }
            *sum = cpu.add_bytes(*sum, line, parts);
        }
    }
    cpu.totals(sums)
}

#[inline(always)]
fn nibble_totals_of_row<I: Instructions>(
    cpu: I,
    lines: RowLines<'_>,
    planes: &[&[i8]; EIGHT],
) -> I::Sums {
    let planes = eight(|query| planes[query].as_chunks().0);
    let mut sums = [cpu.zero(); EIGHT];
    for (at, line) in lines.enumerate() {
        let parts = eight(|query| &planes[query][at]);
        sums = eight(|query| cpu.add_nibbles(sums[query], line, cpu.nibble_parts(parts[query])));
    }
    cpu.totals(sums)
}

#[inline(always)]
fn byte_totals_of_row<I: Instructions>(
    cpu: I,
    lines: RowLines<'_>,
    planes: &[&[i8]; EIGHT],
) -> I::Sums {
    let planes = eight(|query| planes[query].as_chunks().0);
    let mut sums = [cpu.zero(); EIGHT];
    for (at, line) in lines.enumerate() {
        let parts = eight(|query| &planes[query][at]);
        sums = eight(|query| cpu.add_bytes(sums[query], line, cpu.byte_parts(parts[query])));
    }
    cpu.totals(sums)
}

/// The lines of a whole block, eight rows a step. An iterator of its own, because closures inside
/// vector functions are not inlined into the adaptors they are given to.
struct BlockLines<'a>(std::slice::Iter<'a, [Line; EIGHT]>);

impl<'a> Iterator for BlockLines<'a> {
    type Item = [&'a Line; EIGHT];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(<[Line; EIGHT]>::each_ref)
    }
}
