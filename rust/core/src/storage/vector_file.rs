//! Rows of a snapshot in a file, and back: segments are written as they lie in memory, without
//! deleted rows, and mapped where they lie in the file.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::Error;
use crate::collections::append_buffer::{Filling, Line, Region, RegionParts};
use crate::collections::id_map::IdMap;
use crate::quantization::kernel::Kernel;
use crate::quantization::scalar::row_stride;
use crate::quantization::sketch::{Basis, Sketch};
use crate::storage::row_checks::{CHECKED_ROWS, RowChecks, have_sums, vector_sums};
use crate::storage::segment::{SEGMENT_ROWS, Segment, SegmentLayout, SegmentWriter};
use crate::storage::snapshot_store::{Place, VectorRows};
use crate::system::data_file::{DataFile, DataFileWriter, Section, have_sum};
use crate::system::memory_budget::{CALL, headroom};

/// A place beside its id, in a list that grows, then in blocks of a map.
const BYTES_PER_PLACE: usize = 64;

/// Where the rows of a file are.
#[derive(Serialize, Deserialize)]
pub(crate) struct RowsDirectory {
    dim: u64,
    segments: Vec<SegmentEntry>,
    basis: Option<BasisEntry>,
}

impl RowsDirectory {
    pub(crate) fn dim(&self) -> usize {
        usize::try_from(self.dim).unwrap_or(usize::MAX)
    }

    fn rows(&self) -> usize {
        self.segments.len().saturating_mul(SEGMENT_ROWS)
    }
}

#[derive(Serialize, Deserialize)]
struct SegmentEntry {
    rows: u64,
    /// The whole segment; the sum is that of its codes.
    section: Section,
    id_sum: u64,
    vector_sums: Box<[u64]>,
    sketch: Option<Section>,
}

#[derive(Serialize, Deserialize)]
struct BasisEntry {
    learned_from: u64,
    directions: Section,
}

/// A row that is written: its segment's position, its row there, and the id it gets.
struct Source {
    position: usize,
    row: usize,
    id: i64,
}

/// Write the live rows for which `id_of` has an id, under that id. Codes in a file are checked
/// before they are copied; the caller checks afterwards that all vectors were sound.
pub(crate) fn write(
    file: &mut DataFileWriter,
    kernel: &'static dyn Kernel,
    dim: usize,
    rows: &VectorRows,
    id_of: impl Fn(i64) -> Option<i64>,
) -> Result<RowsDirectory, Error> {
    rows.check_codes()?;
    headroom(CALL + rows.places.len() * size_of::<Source>() + SEGMENT_ROWS * (dim * 6 + 1024))?;
    let sources = sources(rows, id_of);
    let writing = Writing { kernel, dim, rows };
    let segments = sources.chunks(SEGMENT_ROWS).map(|chunk| writing.segment(file, chunk));
    let segments = segments.collect::<Result<_, _>>()?;
    let basis = rows.basis.as_ref().map(|basis| {
        let directions = file.append(bytemuck::cast_slice(&basis.directions))?;
        Ok(BasisEntry { learned_from: basis.learned_from as u64, directions })
    });
    Ok(RowsDirectory { dim: dim as u64, segments, basis: basis.transpose()? })
}

fn sources(rows: &VectorRows, id_of: impl Fn(i64) -> Option<i64>) -> Vec<Source> {
    let mut sources = Vec::with_capacity(rows.places.len());
    for (position, view) in rows.segments.iter().enumerate() {
        let ids = view.segment.ids();
        let source = |row: usize| Some(Source { position, row, id: id_of(ids[row])? });
        sources.extend(view.live_rows().filter_map(source));
    }
    sources
}

struct Writing<'a> {
    kernel: &'static dyn Kernel,
    dim: usize,
    rows: &'a VectorRows,
}

impl Writing<'_> {
    fn segment(&self, file: &mut DataFileWriter, chunk: &[Source]) -> Result<SegmentEntry, Error> {
        let layout = SegmentLayout::new(self.dim, chunk.len());
        let region = self.copied(chunk, &layout);
        let bytes = region.bytes();
        let [ids, vectors, end] = layout.places();
        let row_bytes = row_stride(self.dim) * size_of::<f32>();
        Ok(SegmentEntry {
            rows: chunk.len() as u64,
            section: file.append_summed(&bytes[..end], xxh3_64(&bytes[..ids]))?,
            id_sum: xxh3_64(&bytes[ids..vectors]),
            vector_sums: vector_sums(&bytes[vectors..end], row_bytes),
            sketch: self.sketch(file, chunk)?,
        })
    }

    /// The rows side by side, as a segment of them lies in memory.
    fn copied(&self, chunk: &[Source], layout: &SegmentLayout) -> Region {
        let mut parts = RegionParts::of(&layout.sizes(), Filling::OverZeros);
        let mut copy = SegmentWriter::within(self.kernel, self.dim, chunk.len(), &mut parts);
        for source in chunk {
            let segment = &self.rows.segments[source.position].segment;
            copy.append_renamed(segment, source.row, source.id);
        }
        drop(copy);
        parts.into_region().expect("the only writer is gone")
    }

    fn sketch(
        &self,
        file: &mut DataFileWriter,
        chunk: &[Source],
    ) -> Result<Option<Section>, Error> {
        let Some(basis) = &self.rows.basis else { return Ok(None) };
        let mut parts = RegionParts::of(&Sketch::sizes(chunk.len()), Filling::OverZeros);
        let mut copy = Sketch::writer(&mut parts, chunk.len());
        for source in chunk {
            let view = &self.rows.segments[source.position];
            match &view.sketch {
                Some(sketch) => copy.append_from(sketch, source.row),
                None => copy.append(self.kernel, basis, view.segment.vector(source.row)),
            }
        }
        drop(copy.finish());
        let region = parts.into_region().expect("the only writer is gone");
        file.append(region.bytes()).map(Some)
    }
}

/// The rows of a file, mapped; those of an earlier form, whose codes lie otherwise, are coded anew.
///
/// # Errors
///
/// When the file does not hold what its directory says.
pub(crate) fn read(
    kernel: &'static dyn Kernel,
    file: &DataFile,
    dim: usize,
    directory: &RowsDirectory,
    is_earlier: bool,
) -> Result<VectorRows, Error> {
    Error::unless(directory.dim == dim as u64, "its vectors have another dimension")?;
    let reading = Reading { kernel, file, dim };
    // Sketches in the basis of an earlier form are made anew too, with a basis of their own.
    let basis = if is_earlier { None } else { reading.basis(directory)? };
    let mut rows = VectorRows { basis, ..VectorRows::default() };
    headroom(CALL.saturating_add(directory.rows().saturating_mul(BYTES_PER_PLACE)))?;
    let mut places = Vec::new();
    let mut end = 0;
    for (at, entry) in directory.segments.iter().enumerate() {
        let least = if at + 1 == directory.segments.len() { 1 } else { SEGMENT_ROWS };
        let count =
            usize::try_from(entry.rows).ok().filter(|rows| (least..=SEGMENT_ROWS).contains(rows));
        let count = count.ok_or(Error::SnapshotInvalid("a segment has no such size"))?;
        // So no more ids are read than the file has capacity for.
        let range = entry.section.range().filter(|range| range.start >= end);
        end = range.ok_or(Error::SnapshotInvalid("its segments overlap"))?.end;
        let segment = if is_earlier {
            reading.recoded(count, entry)?
        } else {
            Arc::new(reading.segment(count, entry)?)
        };
        let number = rows.add(&segment, count);
        let ids = segment.ids().iter().zip(0..);
        places.extend(ids.map(|(id, row)| (*id, Place::new(number, row))));
        if !is_earlier {
            let sketch = reading.sketch(count, entry, rows.basis.is_some())?;
            rows.segments.last_mut().expect("just added").sketch = sketch;
        }
    }
    if !places.is_sorted_by_key(|(id, _)| *id) {
        places.sort_unstable_by_key(|(id, _)| *id);
    }
    let repeated = Error::SnapshotInvalid("an id is there twice");
    rows.places = IdMap::of_ascending(&places).ok_or(repeated)?;
    Ok(rows)
}

struct Reading<'a> {
    kernel: &'static dyn Kernel,
    file: &'a DataFile,
    dim: usize,
}

impl Reading<'_> {
    fn segment(&self, rows: usize, entry: &SegmentEntry) -> Result<Segment, Error> {
        let Self { file, dim, .. } = *self;
        let damaged = Error::SnapshotInvalid("a segment is not where it should be");
        let layout = SegmentLayout::new(dim, rows);
        let [ids, vectors, end] = layout.places();
        let range = entry.section.range().ok_or(damaged.clone())?;
        let has_sums = entry.vector_sums.len() == rows.div_ceil(CHECKED_ROWS);
        let region = Region::mapped(&file.map, range.start, end)
            .filter(|_| has_sums && range.len() == end)
            .ok_or(damaged.clone())?;
        let first = range.start;
        let are_sound = have_sum(&file.map[first + ids..first + vectors], entry.id_sum);
        Error::unless(are_sound, "ids in it are damaged")?;
        let checks = RowChecks::new(
            Arc::clone(&file.map),
            first..first + ids,
            entry.section.sum,
            first + vectors..first + end,
            row_stride(dim) * size_of::<f32>(),
            entry.vector_sums.clone(),
        );
        Ok(Segment::mapped(&mut RegionParts::within(region), dim, rows, checks))
    }

    /// A segment of the ids and vectors of an earlier form, which its codes do not lie behind.
    fn recoded(&self, rows: usize, entry: &SegmentEntry) -> Result<Arc<Segment>, Error> {
        let Self { kernel, file, dim } = *self;
        let damaged = || Error::SnapshotInvalid("a segment of it is damaged");
        let row_bytes = row_stride(dim) * size_of::<f32>();
        headroom(CALL.saturating_add(rows.saturating_mul(2 * row_bytes + 1024)))?;
        let bytes = entry.section.range().and_then(|range| file.map.get(range)).ok_or(damaged())?;
        let id_bytes = (rows * size_of::<i64>()).next_multiple_of(size_of::<Line>());
        let vectors = bytes.len().checked_sub(rows * row_bytes).ok_or(damaged())?;
        let ids = &bytes[vectors.checked_sub(id_bytes).ok_or(damaged())?..vectors];
        let vectors = &bytes[vectors..];
        if !have_sum(ids, entry.id_sum) || !have_sums(vectors, row_bytes, &entry.vector_sums) {
            return Err(damaged());
        }
        let vectors: &[f32] = bytemuck::try_cast_slice(vectors).map_err(|_| damaged())?;
        let mut writer = SegmentWriter::new(kernel, dim, rows, Filling::AtOnce);
        let ids = ids.as_chunks().0.iter().map(|id| i64::from_ne_bytes(*id)).take(rows);
        for (id, vector) in ids.zip(vectors.chunks_exact(row_stride(dim))) {
            writer.append(id, |row| row.copy_from_slice(vector));
        }
        Ok(Arc::clone(&writer.segment))
    }

    fn sketch(
        &self,
        rows: usize,
        entry: &SegmentEntry,
        has_basis: bool,
    ) -> Result<Option<Arc<Sketch>>, Error> {
        let Some(section) = &entry.sketch else { return Ok(None) };
        Error::unless(has_basis, "it has sketches without their basis")?;
        let damaged = Error::SnapshotInvalid("a sketch is not where it should be");
        let size: usize =
            Sketch::sizes(rows).iter().map(|size| size.next_multiple_of(size_of::<Line>())).sum();
        let range = section.range().filter(|range| range.len() == size).ok_or(damaged.clone())?;
        self.file.section(section)?;
        let region = Region::mapped(&self.file.map, range.start, size).ok_or(damaged)?;
        Ok(Some(Arc::new(Sketch::mapped(&mut RegionParts::within(region), rows))))
    }

    fn basis(&self, directory: &RowsDirectory) -> Result<Option<Arc<Basis>>, Error> {
        let Some(entry) = &directory.basis else { return Ok(None) };
        let directions = bytemuck::pod_collect_to_vec(self.file.section(&entry.directions)?);
        let learned_from = usize::try_from(entry.learned_from).unwrap_or(usize::MAX);
        let basis = Basis::from_parts(self.dim, directions.into(), learned_from);
        let basis = basis.ok_or(Error::SnapshotInvalid("its basis does not fit"))?;
        Ok(Some(Arc::new(basis)))
    }
}
