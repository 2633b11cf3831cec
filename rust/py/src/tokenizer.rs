//! The tokenizers of models, for embedders.

use std::path::PathBuf;

use mnemic_core::system::mapped_file::map_file;
use mnemic_core::text::{Encoding, Tokenizer, UnigramTokenizer, WordPieceTokenizer};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;

use crate::errors::{raised, require_memory};
use crate::text::{Text, detached};

/// Of the tables, with the copies that are made where they grow, for each byte of the file.
const BYTES_PER_BYTE: usize = 16;

#[doc = stub!("Tokenizer")]
#[pyclass(frozen, name = "Tokenizer", module = "mnemic._core")]
pub(crate) struct PyTokenizer {
    tokenizer: Box<dyn Tokenizer>,
    max_tokens: usize,
}

#[pymethods]
impl PyTokenizer {
    #[doc = stub!("Tokenizer.word_piece")]
    #[staticmethod]
    #[pyo3(signature = (file, /, *, max_tokens))]
    fn word_piece(py: Python<'_>, file: &[u8], max_tokens: usize) -> PyResult<Self> {
        require_memory(file.len().saturating_mul(BYTES_PER_BYTE))?;
        let tokenizer = py.detach(|| WordPieceTokenizer::of_file(file)).map_err(raised)?;
        Ok(Self { tokenizer: Box::new(tokenizer), max_tokens })
    }

    #[doc = stub!("Tokenizer.unigram")]
    #[staticmethod]
    #[pyo3(signature = (path, /, *, max_tokens))]
    fn unigram(py: Python<'_>, path: PathBuf, max_tokens: usize) -> PyResult<Self> {
        let open = || UnigramTokenizer::new(map_file(&path)?);
        let tokenizer = py.detach(open).map_err(raised)?;
        Ok(Self { tokenizer: Box::new(tokenizer), max_tokens })
    }

    #[doc = stub!("Tokenizer.encode")]
    #[pyo3(signature = (text, /))]
    fn encode<'py>(&self, py: Python<'py>, text: Text) -> (Bound<'py, PyArray2<i64>>, bool) {
        let Encoding { ids, is_truncated, .. } = self.encoding(py, &text);
        let row: Array2<i64> = Array2::from_shape_fn((1, ids.len()), |(_, at)| ids[at].into());
        (row.into_pyarray(py), is_truncated)
    }

    #[doc = stub!("Tokenizer.characters_seen")]
    #[pyo3(signature = (text, /))]
    fn characters_seen(&self, py: Python<'_>, text: Text) -> usize {
        self.encoding(py, &text).characters
    }
}

impl PyTokenizer {
    pub(crate) fn encode_text(&self, text: &str) -> Encoding {
        self.tokenizer.encode(text, self.max_tokens)
    }

    fn encoding(&self, py: Python<'_>, text: &str) -> Encoding {
        detached(py, text.len(), || self.encode_text(text))
    }
}
