//! `VectorMap`, `Selection` and `Hits`.

use std::path::PathBuf;
use std::sync::Arc;

use mnemic_core::system::memory_budget::filled;
use mnemic_core::{Error, Hit, Metric, Prior, Search, Selection, VectorMap};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyIterator, PySlice, PyString, PyTuple, PyType};

use crate::arrays;
use crate::errors::{InvalidArgumentError, passes, raised, require_memory};

/// Two copies of an id, one of them sorted.
const BYTES_PER_ID: usize = 16;

/// Fills the places of a batch answer that have no hit, and so can be no row's id.
const PADDING: i64 = -1;

/// Hits of a single query that its repr shows.
const SHOWN_HITS: isize = 5;

/// What to write in place of `len(hits)` and `hits[at]`.
const USE_OF_HITS: &str = "they are two arrays; write `ids, scores = hits`, `hits.ids[0]`, \
    `len(hits.ids)`, or `for id, score in zip(hits.ids, hits.scores)`";

/// Largest batch answer, in elements; asking for more is a mistake in `k`.
const BATCH_ELEMENTS: usize = 1 << 28;

#[doc = stub!("VectorMap")]
#[pyclass(frozen, name = "VectorMap", module = "mnemic")]
pub(crate) struct PyVectorMap {
    map: VectorMap,
    label: Vec<u8>,
}

#[doc = stub!("Selection")]
#[pyclass(frozen, name = "Selection", module = "mnemic")]
pub(crate) struct PySelection(Arc<Selection>);

#[doc = stub!("Prior")]
#[pyclass(frozen, name = "Prior", module = "mnemic")]
pub(crate) struct PyPrior(Arc<Prior>);

#[doc = stub!("Hits")]
#[pyclass(frozen, get_all, name = "Hits", module = "mnemic")]
pub(crate) struct PyHits {
    #[doc = stub!("Hits.ids")]
    ids: Py<PyAny>,
    #[doc = stub!("Hits.scores")]
    scores: Py<PyAny>,
    #[doc = stub!("Hits.counts")]
    counts: Option<Py<PyArray1<i64>>>,
}

#[doc = stub!("RangeHits")]
#[pyclass(frozen, get_all, name = "RangeHits", module = "mnemic")]
pub(crate) struct PyRangeHits {
    #[doc = stub!("RangeHits.limits")]
    limits: Py<PyArray1<i64>>,
    #[doc = stub!("RangeHits.ids")]
    ids: Py<PyArray1<i64>>,
    #[doc = stub!("RangeHits.scores")]
    scores: Py<PyArray1<f64>>,
}

#[pymethods]
impl PyRangeHits {
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let (limits, ids, scores) = (&self.limits, &self.ids, &self.scores);
        PyTuple::new(py, [limits.as_any(), ids.as_any(), scores.as_any()])?.try_iter()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (queries, hits) = (self.limits.bind(py).len()? - 1, self.ids.bind(py).len()?);
        Ok(format!("RangeHits({queries} queries, {hits} hits)"))
    }
}

#[pymethods]
impl PyVectorMap {
    #[new]
    #[pyo3(
        signature = (dim = None, *, metric = Checked("cosine"), **others),
        text_signature = "(dim, *, metric=\"cosine\")"
    )]
    fn new(
        py: Python<'_>,
        dim: Option<Checked<i64>>,
        metric: Checked<&str>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        match (dim, others) {
            (Some(dim), None) => Self::empty(dim.0, metric.0),
            (dim, others) => {
                let given: Vec<i64> = dim.into_iter().map(|dim| dim.0).collect();
                let named = others.map_or_else(|| PyDict::new(py), Clone::clone);
                Err(mismatch(py.get_type::<Self>().as_any(), PyTuple::new(py, given)?, &named)?)
            }
        }
    }

    #[doc = stub!("VectorMap.from_rows")]
    #[classmethod]
    #[pyo3(
        signature = (ids, vectors, /, metric = Checked("cosine")),
        text_signature = "($cls, ids, vectors, /, metric=\"cosine\")"
    )]
    fn from_rows(
        _class: &Bound<'_, PyType>,
        ids: &Bound<'_, PyAny>,
        vectors: &Bound<'_, PyAny>,
        metric: Checked<&str>,
    ) -> PyResult<Self> {
        let map = Self::empty(arrays::last_axis(vectors)?, metric.0)?;
        map.write(ids, vectors, VectorMap::replace)?;
        Ok(map)
    }

    #[doc = stub!("VectorMap.load")]
    #[staticmethod]
    #[pyo3(signature = (path, /))]
    fn load(py: Python<'_>, path: Checked<PathBuf>) -> PyResult<Self> {
        let (map, label) = py.detach(move || VectorMap::load(&path.0)).map_err(raised)?;
        if map.contains(PADDING) {
            let problem = "it has a row with id -1, which no row can have";
            return Err(raised(Error::SnapshotInvalid(problem)));
        }
        Ok(Self { map, label })
    }

    #[doc = stub!("VectorMap.label")]
    #[getter]
    fn label<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.label)
    }

    #[doc = stub!("VectorMap.save")]
    #[pyo3(signature = (path, /, *, label = None))]
    fn save(&self, py: Python<'_>, path: Checked<PathBuf>, label: Option<&[u8]>) -> PyResult<()> {
        let label = label.unwrap_or(&self.label);
        py.detach(move || self.map.save(&path.0, label)).map_err(raised)
    }

    #[doc = stub!("VectorMap.ids")]
    fn ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_vec(py, py.detach(|| self.map.ids()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, map) = (slf.py(), slf.get());
        let (ids, rows) = py.detach(|| map.map.rows()).map_err(raised)?;
        let rows = PyArray1::from_vec(py, rows).reshape([ids.len(), map.dim()])?;
        let ids = PyArray1::from_vec(py, ids);
        let from_rows = slf.get_type().getattr("from_rows")?;
        (from_rows, (ids, rows, map.metric())).into_pyobject(py)
    }

    #[doc = stub!("VectorMap.dim")]
    #[getter]
    fn dim(&self) -> usize {
        self.map.dim()
    }

    #[doc = stub!("VectorMap.metric")]
    #[getter]
    fn metric(&self) -> &'static str {
        match self.map.metric() {
            Metric::Cosine => "cosine",
            Metric::InnerProduct => "inner_product",
        }
    }

    #[doc = stub!("VectorMap.nbytes")]
    #[getter]
    fn nbytes(&self) -> usize {
        self.map.bytes()
    }

    fn __len__(&self) -> usize {
        self.map.len()
    }

    fn __contains__(&self, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        match id.extract() {
            Ok(id) => Ok(self.map.contains(id)),
            Err(error) if passes(id.py(), &error) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Raise the error of an attribute that maps of other libraries have, and this one has not.
    fn __getattr__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let habits = slf.py().import("mnemic.reporting.habits")?;
        habits.call_method1("attribute_of_vector_map", (slf, name))
    }

    fn __repr__(&self) -> String {
        format!("<VectorMap dim={} metric={} rows={}>", self.dim(), self.metric(), self.map.len())
    }

    #[doc = stub!("VectorMap.replace")]
    #[pyo3(signature = (ids, vectors, /))]
    fn replace(&self, ids: &Bound<'_, PyAny>, vectors: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write(ids, vectors, VectorMap::replace)
    }

    #[doc = stub!("VectorMap.upsert")]
    #[pyo3(signature = (ids, vectors, /))]
    fn upsert(&self, ids: &Bound<'_, PyAny>, vectors: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write(ids, vectors, VectorMap::upsert)
    }

    #[doc = stub!("VectorMap.remove")]
    #[pyo3(signature = (ids, /))]
    fn remove(&self, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (py, ids) = (ids.py(), arrays::ids(ids)?);
        py.detach(|| self.map.remove(&ids)).map_err(raised)
    }

    #[doc = stub!("VectorMap.get")]
    #[pyo3(signature = (ids, /))]
    fn get<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, is_single) = (ids.py(), ids.is_instance_of::<PyInt>());
        let ids = arrays::ids(ids)?;
        match py.detach(|| self.map.get(&ids)) {
            Err(Error::UnknownId { .. }) if is_single => Ok(None),
            Err(error) => Err(raised(error)),
            Ok(row) if is_single => Ok(Some(PyArray1::from_vec(py, row).into_any())),
            Ok(rows) => {
                let shape = [ids.len(), self.dim()];
                Ok(Some(PyArray1::from_vec(py, rows).reshape(shape)?.into_any()))
            }
        }
    }

    #[doc = stub!("VectorMap.select")]
    #[pyo3(signature = (ids, /))]
    #[expect(clippy::unused_self, reason = "the map is where users look for it")]
    fn select(&self, ids: &Bound<'_, PyAny>) -> PyResult<PySelection> {
        selection_of(ids).map(PySelection)
    }

    #[doc = stub!("VectorMap.prior")]
    #[pyo3(signature = (ids, values, /))]
    #[expect(clippy::unused_self, reason = "the map is where users look for it")]
    fn prior(&self, ids: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<PyPrior> {
        let (py, ids) = (ids.py(), arrays::ids(ids)?);
        let values = arrays::numbers(values, "prior values")?;
        let prior = py.detach(|| Prior::new(&ids, &values)).map_err(raised)?;
        Ok(PyPrior(Arc::new(prior)))
    }

    #[doc = stub!("VectorMap.count")]
    #[pyo3(
        signature = (query, /, *, min_score, allow = None, weight = Checked(1.0), prior = None,
            **others),
        text_signature = "($self, query, /, *, min_score, allow=None, weight=1.0, prior=None)"
    )]
    fn count<'py>(
        slf: &Bound<'py, Self>,
        query: &Bound<'py, PyAny>,
        min_score: Checked<f64>,
        allow: Option<&Bound<'py, PyAny>>,
        weight: Checked<f64>,
        prior: Option<&Bound<'py, PyPrior>>,
        others: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        known_arguments(slf, "count", query, others)?;
        let (py, min_score, weight) = (slf.py(), min_score.0, weight.0);
        let range = RangeArguments { min_score, allow, weight, prior };
        let (counts, is_batch) = slf.get().in_range(query, &range, VectorMap::count)?;
        if is_batch {
            let counts = counts.into_iter().map(|count| count as i64);
            return Ok(PyArray1::from_iter(py, counts).into_any());
        }
        Ok(counts.first().copied().unwrap_or(0).into_pyobject(py)?.into_any())
    }

    #[doc = stub!("VectorMap.range_search")]
    #[pyo3(
        signature = (query, /, *, min_score, allow = None, weight = Checked(1.0), prior = None,
            **others),
        text_signature = "($self, query, /, *, min_score, allow=None, weight=1.0, prior=None)"
    )]
    fn range_search(
        slf: &Bound<'_, Self>,
        query: &Bound<'_, PyAny>,
        min_score: Checked<f64>,
        allow: Option<&Bound<'_, PyAny>>,
        weight: Checked<f64>,
        prior: Option<&Bound<'_, PyPrior>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRangeHits> {
        known_arguments(slf, "range_search", query, others)?;
        let (min_score, weight) = (min_score.0, weight.0);
        let range = RangeArguments { min_score, allow, weight, prior };
        let (found, _) = slf.get().in_range(query, &range, VectorMap::range_search)?;
        range_hits(slf.py(), &found)
    }

    #[doc = stub!("VectorMap.flush")]
    fn flush(&self, py: Python<'_>) {
        py.detach(|| self.map.flush());
    }

    #[doc = stub!("VectorMap.search")]
    #[pyo3(
        signature = (query, /, k = Checked(10), *, allow = None, min_score = None,
            weight = Checked(1.0), prior = None, combine = None, threads = Checked(1), **others),
        text_signature = "($self, query, /, k=10, *, allow=None, min_score=None, weight=1.0, \
            prior=None, combine=None, threads=1)"
    )]
    fn search(
        slf: &Bound<'_, Self>,
        query: &Bound<'_, PyAny>,
        k: Checked<i64>,
        allow: Option<&Bound<'_, PyAny>>,
        min_score: Option<Checked<f64>>,
        weight: Checked<f64>,
        prior: Option<&Bound<'_, PyPrior>>,
        combine: Option<Checked<&str>>,
        threads: Checked<i64>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyHits> {
        known_arguments(slf, "search", query, others)?;
        let (py, this) = (slf.py(), slf.get());
        let k = not_below(k.0, 0, "k")?;
        let threads = not_below(threads.0, 1, "threads")?;
        let combined_by_max = is_combined_by_max(combine.map(|name| name.0))?;
        let queries = arrays::vectors(query, this.dim(), "query")?;
        let allow = allow.map(selection).transpose()?;
        let prior = prior.map(|prior| Arc::clone(&prior.get().0));
        let search = Search {
            k,
            allow: allow.as_deref(),
            min_score: min_score.map_or(f64::NEG_INFINITY, |least| least.0),
            weight: weight.0,
            prior: prior.as_deref(),
            combined_by_max,
            threads,
        };
        let found = py.detach(|| this.map.search(&queries.values, &search)).map_err(raised)?;
        let is_batch = queries.is_batch && !combined_by_max;
        if is_batch { batch_hits(py, &found, k) } else { single_hits(py, &found) }
    }
}

/// An argument that Python cannot convert, such as a text with half a surrogate pair or an int that
/// is too large, is an `InvalidArgumentError`; one of a wrong type stays a `TypeError`.
#[derive(Clone, Copy)]
struct Checked<T>(T);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Checked<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = given.py();
        given.extract().map(Self).map_err(|error| {
            let error: PyErr = error.into();
            if passes(py, &error) || error.is_instance_of::<PyTypeError>(py) {
                return error;
            }
            InvalidArgumentError::new_err(format!(
                "the argument cannot be used: {}",
                error.value(py)
            ))
        })
    }
}

/// Arguments of `count` and `range_search`.
struct RangeArguments<'a, 'py> {
    min_score: f64,
    allow: Option<&'a Bound<'py, PyAny>>,
    weight: f64,
    prior: Option<&'a Bound<'py, PyPrior>>,
}

impl PyVectorMap {
    fn empty(dim: i64, metric: &str) -> PyResult<Self> {
        let metric = metric_named(metric)?;
        // A negative dimension becomes 0, which the core refuses with the range it wants.
        let map = VectorMap::new(usize::try_from(dim).unwrap_or(0), metric).map_err(raised)?;
        Ok(Self { map, label: Vec::new() })
    }

    /// Return the answer of `count` or `range_search`, and whether its queries are a batch.
    fn in_range<T: Send>(
        &self,
        query: &Bound<'_, PyAny>,
        range: &RangeArguments<'_, '_>,
        call: impl FnOnce(&VectorMap, &[f32], &Search<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<(T, bool)> {
        let queries = arrays::vectors(query, self.dim(), "query")?;
        let allow = range.allow.map(selection).transpose()?;
        let prior = range.prior.map(|prior| Arc::clone(&prior.get().0));
        let search = Search {
            allow: allow.as_deref(),
            min_score: range.min_score,
            weight: range.weight,
            prior: prior.as_deref(),
            ..Search::default()
        };
        let found = query.py().detach(|| call(&self.map, &queries.values, &search));
        Ok((found.map_err(raised)?, queries.is_batch))
    }

    fn write(
        &self,
        ids: &Bound<'_, PyAny>,
        vectors: &Bound<'_, PyAny>,
        change: impl FnOnce(&VectorMap, &[i64], &[f32]) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let (py, ids) = (ids.py(), arrays::ids(ids)?);
        if ids.contains(&PADDING) {
            let message = format!(
                "id {PADDING} marks the places of a batch answer that have no hit, and can be no \
                 row's; use another id"
            );
            return Err(InvalidArgumentError::new_err(message));
        }
        let vectors = arrays::vectors(vectors, self.dim(), "vectors")?;
        py.detach(|| change(&self.map, &ids, &vectors.values)).map_err(raised)
    }
}

#[pymethods]
impl PySelection {
    fn __len__(&self) -> usize {
        self.0.ids().len()
    }

    #[doc = stub!("Selection.ids")]
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_slice(py, self.0.ids())
    }

    fn __repr__(&self) -> String {
        format!("<Selection of {} ids>", self.0.ids().len())
    }
}

#[pymethods]
impl PyPrior {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<Prior of {} ids>", self.0.len())
    }
}

#[pymethods]
impl PyHits {
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, [&self.ids, &self.scores])?.try_iter()
    }

    #[doc = stub!("Hits.mask")]
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // No row has the id that marks empty places.
        self.ids.bind(py).rich_compare(PADDING, CompareOp::Ne)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        match &self.counts {
            Some(counts) => Ok(counts.bind(py).try_readonly()?.as_array().iter().any(|n| *n > 0)),
            None => Ok(self.ids.bind(py).len()? > 0),
        }
    }

    #[expect(clippy::unused_self, reason = "Python calls it with the hits")]
    fn __len__(&self) -> PyResult<usize> {
        Err(PyTypeError::new_err(format!("Hits have no length: {USE_OF_HITS}")))
    }

    #[expect(clippy::unused_self, reason = "Python calls it with the hits")]
    fn __getitem__(&self, _at: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err(format!("Hits have no items: {USE_OF_HITS}")))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let ids = self.ids.bind(py);
        if self.counts.is_some() {
            let (queries, k): (usize, usize) = ids.getattr("shape")?.extract()?;
            return Ok(format!("Hits({queries} queries, k={k})"));
        }
        let first = PySlice::new(py, 0, SHOWN_HITS, 1);
        let shown_ids: Vec<i64> = ids.get_item(&first)?.extract()?;
        let shown_scores: Vec<f64> = self.scores.bind(py).get_item(&first)?.extract()?;
        let pairs = shown_ids.iter().zip(&shown_scores);
        let mut shown: Vec<String> = pairs.map(|(id, score)| format!("{id}: {score:.3}")).collect();
        let hits = ids.len()?;
        if hits > shown.len() {
            shown.push("…".to_owned());
        }
        let noun = if hits == 1 { "hit" } else { "hits" };
        Ok(format!("Hits({hits} {noun}, {{{}}})", shown.join(", ")))
    }
}

/// Raise the error of arguments that a method does not have, with the nearest one that it has.
fn known_arguments(
    map: &Bound<'_, PyVectorMap>,
    method: &str,
    query: &Bound<'_, PyAny>,
    others: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let Some(others) = others else { return Ok(()) };
    Err(mismatch(&map.getattr(method)?, (query,).into_pyobject(map.py())?, others)?)
}

/// The error of a call whose arguments are not those of its signature.
fn mismatch<'py>(
    called: &Bound<'py, PyAny>,
    values: Bound<'py, PyTuple>,
    named: &Bound<'py, PyDict>,
) -> PyResult<PyErr> {
    let py = called.py();
    let error = PyTypeError::new_err("an argument is unknown or missing");
    let failed = (error.value(py), called, values, named);
    py.import("mnemic.reporting.near_names")?.call_method1("explain_failure", failed)?;
    Ok(error)
}

fn not_below(number: i64, least: usize, what: &str) -> PyResult<usize> {
    usize::try_from(number).ok().filter(|number| *number >= least).ok_or_else(|| {
        let message = format!("{what} must be at least {least}, found {number}");
        InvalidArgumentError::new_err(message)
    })
}

fn is_combined_by_max(combine: Option<&str>) -> PyResult<bool> {
    match combine {
        None => Ok(false),
        Some("max") => Ok(true),
        Some(name) => {
            let message = format!("combine must be None or 'max', found {name:?}");
            Err(InvalidArgumentError::new_err(message))
        }
    }
}

fn metric_named(name: &str) -> PyResult<Metric> {
    match name {
        "cosine" => Ok(Metric::Cosine),
        "inner_product" => Ok(Metric::InnerProduct),
        _ => {
            let hint = meant_metric(name);
            let message =
                format!("metric must be 'cosine' or 'inner_product', found {name:?}{hint}");
            Err(InvalidArgumentError::new_err(message))
        }
    }
}

/// What to write in place of another library's name of a metric.
fn meant_metric(name: &str) -> &'static str {
    match name.to_ascii_lowercase().as_str() {
        "ip" | "dot" | "dot_product" | "dotproduct" => "; write metric='inner_product'",
        "l2" | "euclidean" | "sqeuclidean" => {
            "; metric='cosine' orders vectors of unit length as Euclidean distance does"
        }
        "cos" | "angular" | "cosine_similarity" => "; write metric='cosine'",
        _ => "",
    }
}

fn selection(argument: &Bound<'_, PyAny>) -> PyResult<Arc<Selection>> {
    if let Ok(selection) = argument.cast::<PySelection>() {
        return Ok(Arc::clone(&selection.get().0));
    }
    selection_of(argument)
}

fn selection_of(ids: &Bound<'_, PyAny>) -> PyResult<Arc<Selection>> {
    let (py, ids) = (ids.py(), arrays::ids(ids)?);
    require_memory(ids.len().saturating_mul(BYTES_PER_ID))?;
    Ok(Arc::new(py.detach(|| Selection::new(&ids))))
}

fn single_hits(py: Python<'_>, found: &[Vec<Hit>]) -> PyResult<PyHits> {
    let hits = found.first().map_or(&[][..], Vec::as_slice);
    require_memory(hits.len().saturating_mul(2 * size_of::<Hit>()))?;
    let ids = PyArray1::from_iter(py, hits.iter().map(|hit| hit.id));
    let scores = PyArray1::from_iter(py, hits.iter().map(|hit| hit.score));
    Ok(PyHits { ids: ids.into_any().unbind(), scores: scores.into_any().unbind(), counts: None })
}

fn range_hits(py: Python<'_>, found: &[Vec<Hit>]) -> PyResult<PyRangeHits> {
    let hits: usize = found.iter().map(Vec::len).sum();
    require_memory(hits.saturating_mul(2 * size_of::<Hit>()))?;
    let mut limits = vec![0];
    limits.extend(found.iter().scan(0, |end, hits| {
        *end += hits.len() as i64;
        Some(*end)
    }));
    let all = || found.iter().flatten();
    Ok(PyRangeHits {
        limits: PyArray1::from_vec(py, limits).unbind(),
        ids: PyArray1::from_iter(py, all().map(|hit| hit.id)).unbind(),
        scores: PyArray1::from_iter(py, all().map(|hit| hit.score)).unbind(),
    })
}

fn batch_hits(py: Python<'_>, found: &[Vec<Hit>], k: usize) -> PyResult<PyHits> {
    let elements = k.checked_mul(found.len()).filter(|elements| *elements <= BATCH_ELEMENTS);
    let Some(elements) = elements else {
        let message = format!(
            "a batch answer has {} x k elements, at most {BATCH_ELEMENTS}; found k = {k}",
            found.len()
        );
        return Err(InvalidArgumentError::new_err(message));
    };
    let mut ids = filled(PADDING, elements).map_err(raised)?;
    let mut scores = filled(f64::NEG_INFINITY, elements).map_err(raised)?;
    for (query, hits) in found.iter().enumerate() {
        for (at, hit) in hits.iter().enumerate() {
            ids[query * k + at] = hit.id;
            scores[query * k + at] = hit.score;
        }
    }
    let shape = [found.len(), k];
    let ids: Bound<'_, PyArray2<i64>> = PyArray1::from_vec(py, ids).reshape(shape)?;
    let scores: Bound<'_, PyArray2<f64>> = PyArray1::from_vec(py, scores).reshape(shape)?;
    let counts = PyArray1::from_iter(py, found.iter().map(|hits| hits.len() as i64));
    Ok(PyHits {
        ids: ids.into_any().unbind(),
        scores: scores.into_any().unbind(),
        counts: Some(counts.unbind()),
    })
}
