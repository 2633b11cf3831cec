//! The encoder of sentences, for the local embedder.

use std::path::PathBuf;
use std::thread::available_parallelism;

use mnemic_core::text::Encoding;
use mnemic_embed::{Checksum, Encoder, Error};
use numpy::ndarray::{Array1, Array2};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;

use crate::deadline::deadline_at;
use crate::errors::{
    DeadlineExceededError, EmbeddingError, InvalidArgumentError, KernelUnavailableError,
};
use crate::text::utf8;
use crate::word_piece::PyWordPieceTokenizer;

#[doc = stub!("SentenceEncoder")]
#[pyclass(frozen, name = "SentenceEncoder", module = "mnemic._core")]
pub(crate) struct PySentenceEncoder {
    encoder: Encoder,
    tokenizer: Py<PyWordPieceTokenizer>,
}

type Vectors<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<bool>>);

#[pymethods]
impl PySentenceEncoder {
    #[new]
    #[pyo3(signature = (weights, tokenizer, /, *, verify=false))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
    fn new(
        py: Python<'_>,
        weights: PathBuf,
        tokenizer: Py<PyWordPieceTokenizer>,
        verify: bool,
    ) -> PyResult<Self> {
        let checksum = if verify { Checksum::Verified } else { Checksum::Trusted };
        let encoder = py.detach(|| Encoder::open(&weights, checksum)).map_err(raised)?;
        Ok(Self { encoder, tokenizer })
    }

    #[doc = stub!("SentenceEncoder.embed")]
    #[pyo3(signature = (texts, /, *, threads=None, deadline=None))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
    fn embed<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyString>>,
        threads: Option<usize>,
        deadline: Option<f64>,
    ) -> PyResult<Vectors<'py>> {
        let texts = texts
            .iter()
            .enumerate()
            .map(|(at, text)| utf8(text.clone(), || format!("texts[{at}]")))
            .collect::<PyResult<Vec<_>>>()?;
        let deadline = deadline_at(py, deadline)?;
        let (vectors, cut) =
            py.detach(|| self.vectors(&texts, threads, &|| deadline.is_past())).map_err(raised)?;
        Ok((vectors.into_pyarray(py), cut.into_pyarray(py)))
    }
}

impl PySentenceEncoder {
    fn vectors(
        &self,
        texts: &[PyBackedStr],
        threads: Option<usize>,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Array2<f32>, Array1<bool>), Error> {
        let tokenizer = self.tokenizer.get();
        let encode = |text: &PyBackedStr| tokenizer.encode_text(text);
        let encodings: Vec<Encoding> = texts.iter().map(encode).collect();
        let tokens: Vec<&[u32]> = encodings.iter().map(|encoding| &*encoding.ids).collect();
        let mut vectors = Array2::zeros((texts.len(), self.encoder.dimensions()));
        let places = vectors.as_slice_mut().expect("a new array is contiguous");
        let threads = threads.unwrap_or_else(|| available_parallelism().map_or(1, Into::into));
        self.encoder.embed(&tokens, places, threads, is_over)?;
        Ok((vectors, encodings.iter().map(|encoding| encoding.is_truncated).collect()))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands the error over")]
fn raised(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Unreadable { .. } | Error::Invalid { .. } => EmbeddingError::new_err(message),
        Error::UnsupportedKernel { .. } => KernelUnavailableError::new_err(message),
        Error::Interrupted => DeadlineExceededError::new_err(()),
        Error::NoTokens { .. }
        | Error::TooManyTokens { .. }
        | Error::UnknownToken { .. }
        | Error::PlaceMismatch { .. } => InvalidArgumentError::new_err(message),
    }
}
