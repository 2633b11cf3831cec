//! The scale of an embedder's cosines, learned from a user's memories.

use crate::Error;
use crate::columns::{Ask, Scope, Users};
use crate::ids::vector_id;
use crate::quantization::scalar::norm;
use crate::rank::cosine_scale::CosineScale;
use crate::rank::evidence::fewer;

use super::MemoryIndex;

/// Memories whose vectors are read: so many at least, and less than three times as many on average.
const SAMPLE: usize = 512;

/// Memories that each is compared with for the spread, at most.
const COMPARED: usize = 8;

/// Fewer memories may all be about one thing, and are then more like each other than any question.
const MIN_MEMORIES: usize = 32;

/// By so much of the cosines above the mean the floor is below it: a query is less like the memories
/// than they are like each other.
const BELOW_MEAN: f64 = 0.1;

/// So many standard deviations below the mean there is hardly any pair of texts.
const DEVIATIONS: f64 = 3.0;

/// Memories that are all alike are still found by a text of the same vector.
const MAX_COSINE: f64 = 1.0 - 1e-5;

impl MemoryIndex {
    /// The scale of the cosines of these users' memories, and the sum of their directions; `None` with
    /// fewer than 32 vectors.
    ///
    /// It depends on nothing but the ids and the first vectors of the memories that are there: not
    /// on the order in which they came, nor on a filter.
    ///
    /// # Errors
    ///
    /// When a vector that was read is damaged.
    pub fn cosine_scale(
        &self,
        users: Users<'_>,
        now: i64,
    ) -> Result<Option<(CosineScale, Vec<f32>)>, Error> {
        let snapshot = self.store.snapshot();
        let columns = &snapshot.memories.columns;
        let scope = Scope { user: users, project: None, session: None };
        let docids = columns.select(&Ask { scope, now, ..Ask::default() }).docids();
        // A power of two: with twice the memories half of the sample stays.
        let stride = 1_u64 << (docids.len() / SAMPLE).max(1).ilog2();
        let hashed = docids.iter().map(|docid| {
            let tie = columns.tie_of(*docid);
            (hash(tie.id), tie, *docid)
        });
        let mut sampled: Vec<_> = hashed.filter(|(hash, ..)| hash.is_multiple_of(stride)).collect();
        // In one order, so that the sums are the same to the last bit; by the hash, so that those
        // compared are no turns of one conversation.
        sampled.sort_unstable();
        let vectors = &snapshot.vectors;
        let vector_of = |docid: u32| {
            let place = vectors.places.get(vector_id(docid, 0))?;
            let position = vectors.position(place.number())?;
            Some(vectors.segments[position].segment.vector(place.row()))
        };
        let rows = sampled.iter().filter_map(|(.., docid)| vector_of(*docid));
        let rows: Vec<&[f32]> = rows.filter(|vector| norm(vector) > 0.0).collect();
        vectors.check_read()?;
        if rows.len() < MIN_MEMORIES {
            return Ok(None);
        }
        let sum = self.sum_of(&rows);
        let mean = mean_cosine(&sum, rows.len()).min(MAX_COSINE);
        let floor = mean - (1.0 - mean) * (BELOW_MEAN + fewer(docids.len(), false));
        let spread = self.spread(&rows);
        let scale = CosineScale { mean, spread, floor, lower_limit: mean - DEVIATIONS * spread };
        Ok(Some((scale, sum.into_iter().map(|part| part as f32).collect())))
    }

    /// The sum of rows, which have unit length.
    fn sum_of(&self, rows: &[&[f32]]) -> Vec<f64> {
        let mut sum = vec![0.0; self.dim];
        for row in rows {
            sum.iter_mut().zip(*row).for_each(|(sum, part)| *sum += f64::from(*part));
        }
        sum
    }

    /// The standard deviation of the cosines of rows with some of those that follow, in a circle.
    fn spread(&self, rows: &[&[f32]]) -> f64 {
        let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
        for (at, row) in rows.iter().enumerate() {
            let row: Vec<f64> = row.iter().copied().map(f64::from).collect();
            for step in 1..=COMPARED.min((rows.len() - 1) / 2) {
                let cosine = self.kernel.dot(rows[(at + step) % rows.len()], &row);
                sum += cosine;
                squares += cosine * cosine;
                count += 1.0;
            }
        }
        let mean: f64 = sum / count;
        (squares / count - mean * mean).max(0.0).sqrt()
    }
}

/// The mean cosine of two different vectors of unit length, by the sum of all.
fn mean_cosine(sum: &[f64], count: usize) -> f64 {
    let count = count as f64;
    // The square of the sum holds each pair twice, and each vector with itself.
    let squared: f64 = sum.iter().map(|part| part * part).sum();
    (squared - count) / (count * (count - 1.0))
}

/// FNV-1a of an id: which memories are sampled depends on nothing else.
fn hash(id: [u8; 16]) -> u64 {
    id.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
