//! The tokenizer of BERT models, for embedders.

use mnemic_core::text::{Encoding, WordPieceTokenizer};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyString};

use crate::errors::{raised, require_memory};
use crate::text::{DETACH_BYTES, utf8};

/// Places in the tables, with the copies that are made where they grow.
const BYTES_PER_PIECE: usize = 256;

#[doc = stub!("WordPieceTokenizer")]
#[pyclass(frozen, name = "WordPieceTokenizer", module = "mnemic._core")]
pub(crate) struct PyWordPieceTokenizer {
    tokenizer: WordPieceTokenizer,
    max_tokens: usize,
}

#[pymethods]
impl PyWordPieceTokenizer {
    #[new]
    #[pyo3(signature = (vocabulary, /, *, special_tokens, max_tokens))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
    fn new(
        vocabulary: &Bound<'_, PyDict>,
        special_tokens: Vec<String>,
        max_tokens: usize,
    ) -> PyResult<Self> {
        let special: Vec<&str> = special_tokens.iter().map(String::as_str).collect();
        let pair = |(piece, id): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((piece.extract::<PyBackedStr>()?, id.extract::<u32>()?))
        };
        require_memory(vocabulary.len().saturating_mul(BYTES_PER_PIECE))?;
        let pieces: Vec<_> = vocabulary.iter().map(pair).collect::<PyResult<_>>()?;
        let characters = pieces.iter().map(|(piece, _)| piece.len()).sum::<usize>();
        require_memory(pieces.len().saturating_mul(BYTES_PER_PIECE).saturating_add(characters))?;
        let pieces = pieces.iter().map(|(piece, id)| (&**piece, *id));
        let tokenizer = WordPieceTokenizer::new(pieces, &special).map_err(raised)?;
        Ok(Self { tokenizer, max_tokens })
    }

    #[doc = stub!("WordPieceTokenizer.encode")]
    #[pyo3(signature = (text, /))]
    fn encode<'py>(
        &self,
        text: &Bound<'py, PyString>,
    ) -> PyResult<(Bound<'py, PyArray2<i64>>, bool)> {
        let Encoding { ids, is_truncated, .. } = self.encoding(text)?;
        let row: Array2<i64> = Array2::from_shape_fn((1, ids.len()), |(_, at)| ids[at].into());
        Ok((row.into_pyarray(text.py()), is_truncated))
    }

    #[doc = stub!("WordPieceTokenizer.characters_seen")]
    #[pyo3(signature = (text, /))]
    fn characters_seen(&self, text: &Bound<'_, PyString>) -> PyResult<usize> {
        Ok(self.encoding(text)?.characters)
    }
}

impl PyWordPieceTokenizer {
    pub(crate) fn encode_text(&self, text: &str) -> Encoding {
        self.tokenizer.encode(text, self.max_tokens)
    }

    fn encoding(&self, text: &Bound<'_, PyString>) -> PyResult<Encoding> {
        let py = text.py();
        let text = utf8(text.clone(), || "text".to_owned())?;
        let encode = || self.encode_text(&text);
        Ok(if text.len() < DETACH_BYTES { encode() } else { py.detach(encode) })
    }
}
