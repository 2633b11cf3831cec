//! The extension module `mnemic._core`: every function converts, detaches, calls the core, converts.

#![expect(clippy::doc_markdown, reason = "the docstrings of the stub file are not Markdown")]
#![expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
#![expect(clippy::too_many_arguments, reason = "keyword arguments are the interface of Python")]

/// The docstring of a class, function or method in the stub file; `build.rs` writes them.
macro_rules! stub {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name, ".txt"))
    };
}

mod arrays;
mod checksum;
mod deadline;
mod distinct;
mod duplicates;
mod errors;
mod file_locks;
mod filter;
mod interleaving;
mod listing;
mod matching;
mod memory_index;
mod neutralise;
mod new_file;
mod records;
mod redaction;
mod requests;
mod scorings;
mod sentence_encoder;
mod sentences;
mod text;
mod tokenizer;
mod vector_map;

use pyo3::prelude::*;

#[doc = stub!("simd_kernel")]
#[pyfunction]
fn simd_kernel() -> PyResult<&'static str> {
    mnemic_core::kernel_name().map_err(errors::raised)
}

#[pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    use super::records::COLUMNS;

    #[pymodule_export]
    const FINGERPRINT_VERSION: u32 = mnemic_core::text::FINGERPRINT_VERSION;
    #[pymodule_export]
    use super::{
        checksum::{
            PyVectorSums, changed_sums, check_links, check_rows, check_vectors, column_sum,
            link_sums, lost_in_log, placed_sums, read_vectors, row_sums, vector_sums,
        },
        distinct::distinct_values,
        duplicates::duplicates,
        file_locks::{allocate, file_id, lock_calls},
        interleaving::interleaved,
        matching::matches,
        memory_index::{PyIndexSnapshot, PyMemoryIndex},
        neutralise::neutralise_batch,
        new_file::{PyNewFile, remove_part, remove_parts, sync_folder},
        redaction::{PyRedactor, redaction_names},
        requests::salience_parts,
        sentence_encoder::PySentenceEncoder,
        sentences::{
            clip_sentences, clip_sentences_batch, markdown_blocks, passage, sentences, truncate,
            truncate_to_tokens,
        },
        simd_kernel,
        text::{
            PyCoverage, date_ranges, detect_language, estimate_tokens, fingerprint,
            fingerprint_digests, fold, tokens,
        },
        tokenizer::PyTokenizer,
        vector_map::{PyHits, PyPrior, PyRangeHits, PySelection, PyVectorMap},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let fields: Vec<_> = COLUMNS
            .iter()
            .map(|column| (column.name, column.kind, column.sum, column.filter))
            .collect();
        module.add("RECORD_FIELDS", PyTuple::new(module.py(), fields)?)?;
        let columns = ["row"].into_iter().chain(COLUMNS.iter().map(|column| column.name));
        let columns: Vec<_> = columns.collect();
        module.add("RECORD_COLUMNS", PyTuple::new(module.py(), columns)?)?;
        let columns: Vec<&str> = super::checksum::columns().collect();
        module.add("SUMMED_COLUMNS", PyTuple::new(module.py(), columns)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
