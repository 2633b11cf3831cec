//! The encoder of sentences, for the local embedder.

use std::ops::Range;
use std::path::PathBuf;
use std::thread::available_parallelism;

use mnemic_core::deadline::Deadline;
use mnemic_core::text::Encoding;
use mnemic_embed::{Checksum, Encoder, Error};
use numpy::ndarray::{Array1, Array2, ArrayViewMut1, ArrayViewMut2, s};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyList, PyString};

use crate::deadline::deadline_at;
use crate::errors::{
    DeadlineExceededError, EmbeddingError, InvalidArgumentError, KernelUnavailableError,
    require_memory,
};
use crate::text::utf8;
use crate::tokenizer::PyTokenizer;

/// Texts, and tokens of each thread, between two looks for a signal: some .3 s with AVX2, and .9 of
/// the multilingual model.
const TEXTS_AT_ONCE: usize = 512;
const TOKENS_AT_ONCE: usize = 4096;
/// More than these take.
const TOKEN_BYTES: usize = 1 << 20;

/// Bytes of a text that take as long to read as a token to embed.
const BYTES_IN_TIME_OF_TOKEN: usize = 4096;

#[doc = stub!("SentenceEncoder")]
#[pyclass(frozen, name = "SentenceEncoder", module = "mnemic._core")]
pub(crate) struct PySentenceEncoder {
    encoder: Encoder,
    tokenizer: Py<PyTokenizer>,
    /// Counting them takes a tenth of a question's time.
    cpus: usize,
}

type Vectors<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<bool>>);

#[pymethods]
impl PySentenceEncoder {
    #[new]
    #[pyo3(signature = (weights, tokenizer, /, *, verify=false))]
    fn new(
        py: Python<'_>,
        weights: PathBuf,
        tokenizer: Py<PyTokenizer>,
        verify: bool,
    ) -> PyResult<Self> {
        let checksum = if verify { Checksum::Verified } else { Checksum::Trusted };
        let encoder = py.detach(|| Encoder::open(&weights, checksum)).map_err(raised)?;
        Ok(Self { encoder, tokenizer, cpus: available_parallelism().map_or(1, Into::into) })
    }

    #[doc = stub!("SentenceEncoder.embed")]
    #[pyo3(signature = (texts, /, *, threads=None, deadline=None))]
    fn embed<'py>(
        &self,
        texts: &Bound<'py, PyList>,
        threads: Option<usize>,
        deadline: Option<f64>,
    ) -> PyResult<Vectors<'py>> {
        let (py, count) = (texts.py(), texts.len());
        let row_bytes = size_of::<f32>() * self.encoder.dimensions() + size_of::<bool>();
        require_memory(count.saturating_mul(row_bytes).saturating_add(TOKEN_BYTES))?;
        let mut vectors = Array2::zeros((count, self.encoder.dimensions()));
        let mut cut = Array1::from_elem(count, false);
        let deadline = deadline_at(py, deadline)?;
        let mut done = 0;
        while done < count {
            let some = backed(texts, done..count.min(done + TEXTS_AT_ONCE))?;
            let places = (vectors.slice_mut(s![done.., ..]), cut.slice_mut(s![done..]));
            done += py.detach(|| self.embed_some(&some, places, threads, &deadline))?;
            py.check_signals()?;
        }
        Ok((vectors.into_pyarray(py), cut.into_pyarray(py)))
    }
}

impl PySentenceEncoder {
    /// Embed the first of some texts, as many as take a moment; returns how many.
    fn embed_some(
        &self,
        texts: &[PyBackedStr],
        (mut vectors, mut cut): (ArrayViewMut2<'_, f32>, ArrayViewMut1<'_, bool>),
        threads: Option<usize>,
        deadline: &Deadline,
    ) -> PyResult<usize> {
        let threads = threads.unwrap_or(self.cpus).min(texts.len()).max(1);
        let at_once = TOKENS_AT_ONCE.saturating_mul(threads.min(self.cpus));
        let encodings = self.encoded(texts, at_once, deadline).map_err(raised)?;
        let tokens: Vec<&[u32]> = encodings.iter().map(|encoding| &*encoding.ids).collect();
        let memory = |threads| require_memory(self.encoder.memory(&tokens, threads));
        let mut threads = threads;
        while threads > 1 && memory(threads).is_err() {
            threads /= 2;
        }
        memory(threads)?;
        let place = vectors.as_slice_mut().expect("rows of a new array are contiguous");
        let place = &mut place[..tokens.len() * self.encoder.dimensions()];
        self.encoder.embed(&tokens, place, threads, &|| deadline.is_past()).map_err(raised)?;
        for (cut, encoding) in cut.iter_mut().zip(&encodings) {
            *cut = encoding.is_truncated;
        }
        Ok(encodings.len())
    }

    fn encoded(
        &self,
        texts: &[PyBackedStr],
        at_once: usize,
        deadline: &Deadline,
    ) -> Result<Vec<Encoding>, Error> {
        let (mut encodings, mut tokens) = (Vec::new(), 0);
        for text in texts {
            if tokens >= at_once {
                break;
            }
            if deadline.is_past() {
                return Err(Error::Interrupted);
            }
            let encoding = self.tokenizer.get().encode_text(text);
            tokens += encoding.ids.len() + text.len() / BYTES_IN_TIME_OF_TOKEN;
            encodings.push(encoding);
        }
        Ok(encodings)
    }
}

fn backed(texts: &Bound<'_, PyList>, places: Range<usize>) -> PyResult<Vec<PyBackedStr>> {
    let backed = |at: usize| {
        let text = texts.get_item(at)?.cast_into::<PyString>()?;
        utf8(text, || format!("texts[{at}]"))
    };
    places.map(backed).collect()
}

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
