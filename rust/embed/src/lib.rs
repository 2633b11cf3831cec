//! Sentence embeddings by a BERT encoder on the CPU.
//!
//! The weights are 8-bit integers mapped from one file. Activations are rounded to 8 bits, each
//! token by itself, so a vector does not depend on the texts beside it. All kernels add up the
//! same integers and round the same floats: a vector is the same, bit for bit, on every CPU.

#[cfg(not(target_endian = "little"))]
compile_error!("the file of weights is mapped as it is, and its numbers are little-endian");

#[cfg(test)]
mod counting;
mod encoder;
mod error;
mod floats;
mod format;
mod forward;
mod kernel;
#[cfg(test)]
mod model_file;
mod scratch;
#[cfg(test)]
mod tests;

pub use encoder::Encoder;
pub use error::Error;
pub use format::Checksum;
