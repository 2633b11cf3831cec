//! `MemoryIndex`: the core's index of an agent's memories.

use std::path::PathBuf;

use mnemic_core::columns::{Access, Ask, DistinctValues};
use mnemic_core::lexical::Weighed;
use mnemic_core::memory::links::Link;
use mnemic_core::text::{Role, TimeZone};
use mnemic_core::{
    Answer, Batch, Components, CosineScale, Evidence, EvidenceFloor, IndexSnapshot, LinkedHit,
    MemoryHit, MemoryIndex, NeighbourHit, Request, RowSet, Why,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::arrays;
use crate::deadline::deadline_at;
use crate::distinct::page_of;
use crate::errors::{raised, require_memory};
use crate::filter;
use crate::listing::ListRequest;
use crate::records::{GivenAccess, accesses_of, link_of, records_of};
use crate::requests::{
    Given, GivenScope, LinkSearch, Listed, NeighbourSearch, Search, offset_changes, sort_key_of,
};
use crate::scorings::Scorings;
use crate::text::{PyCoverage, analyser_of};

/// Number of components returned without `explain`: the first ones.
const MAIN_COMPONENTS: usize = 2;

#[doc = stub!("MemoryIndex")]
#[pyclass(frozen, name = "MemoryIndex", module = "mnemic._core")]
pub(crate) struct PyMemoryIndex(MemoryIndex, Scorings);

#[doc = stub!("IndexSnapshot")]
#[pyclass(frozen, name = "IndexSnapshot", module = "mnemic._core")]
pub(crate) struct PyIndexSnapshot(IndexSnapshot);

/// Rows, their vectors, and the docid after them.
type VectorsOf<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<f32>>, Option<u32>);

#[pymethods]
impl PyIndexSnapshot {
    #[doc = stub!("IndexSnapshot.save")]
    #[pyo3(signature = (path, label, /, *, without = vec![]),
        text_signature = "($self, path, label, /, *, without=())")]
    fn save(&self, py: Python<'_>, path: PathBuf, label: &[u8], without: Vec<i64>) -> PyResult<()> {
        py.detach(move || self.0.save(&path, label, &without)).map_err(raised)
    }

    #[doc = stub!("IndexSnapshot.vector_count")]
    #[getter]
    fn vector_count(&self) -> usize {
        self.0.vector_count()
    }

    #[doc = stub!("IndexSnapshot.vectors")]
    #[pyo3(signature = (first, docids, /))]
    fn vectors<'py>(&self, py: Python<'py>, first: u32, docids: usize) -> PyResult<VectorsOf<'py>> {
        let page = py.detach(|| self.0.vectors(first, docids)).map_err(raised)?;
        let shape = [page.rows.len(), self.0.dim()];
        let vectors = PyArray1::from_vec(py, page.vectors).reshape(shape)?;
        Ok((PyArray1::from_vec(py, page.rows), vectors, page.next))
    }

    #[doc = stub!("IndexSnapshot.sensitive")]
    fn sensitive<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let rows = py.detach(|| self.0.sensitive());
        PyArray1::from_vec(py, rows)
    }
}

#[pymethods]
impl PyMemoryIndex {
    #[new]
    #[pyo3(signature = (dim, /, *, language = Some("en"), coverage = None),
        text_signature = "(dim, /, *, language='en', coverage=None)")]
    fn new(
        dim: Option<usize>,
        language: Option<&str>,
        coverage: Option<&PyCoverage>,
    ) -> PyResult<Self> {
        let analyser = analyser_of(language)?;
        let coverage = coverage.map(|coverage| coverage.0.clone());
        let index = MemoryIndex::new(dim, analyser, coverage).map_err(raised)?;
        Ok(Self(index, Scorings::default()))
    }

    #[doc = stub!("MemoryIndex.load_file")]
    #[staticmethod]
    #[pyo3(signature = (path, dim, /, *, language = Some("en"), coverage = None),
        text_signature = "(path, dim, /, *, language='en', coverage=None)")]
    fn load_file<'py>(
        py: Python<'py>,
        path: PathBuf,
        dim: Option<usize>,
        language: Option<&str>,
        coverage: Option<&PyCoverage>,
    ) -> PyResult<(Self, Bound<'py, PyBytes>)> {
        let analyser = analyser_of(language)?;
        let coverage = coverage.map(|coverage| coverage.0.clone());
        let (index, label) = py
            .detach(move || MemoryIndex::load_file(&path, dim, analyser, coverage))
            .map_err(raised)?;
        Ok((Self(index, Scorings::default()), PyBytes::new(py, &label)))
    }

    #[doc = stub!("MemoryIndex.snapshot")]
    fn snapshot(&self) -> PyIndexSnapshot {
        PyIndexSnapshot(self.0.snapshot())
    }

    #[doc = stub!("MemoryIndex.dim")]
    #[getter]
    fn dim(&self) -> usize {
        self.0.dim()
    }

    #[doc = stub!("MemoryIndex.nbytes")]
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    #[doc = stub!("MemoryIndex.next_expiry")]
    #[pyo3(signature = (scope, now, /))]
    fn next_expiry(&self, scope: Given<GivenScope>, now: i64) -> Option<i64> {
        self.0.next_expiry(scope.0.users(), now)
    }

    #[doc = stub!("MemoryIndex.docids")]
    #[getter]
    fn docids(&self) -> usize {
        self.0.docids()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[doc = stub!("MemoryIndex.unembedded")]
    fn unembedded(&self) -> Vec<i64> {
        self.0.unembedded()
    }

    #[doc = stub!("MemoryIndex.apply")]
    #[pyo3(signature = (records, embedded, vectors, removed, linked = Listed(vec![]), links = Listed(vec![]), /),
        text_signature = "($self, records, embedded, vectors, removed, linked=[], links=[], /)")]
    fn apply(
        &self,
        records: &Bound<'_, PyList>,
        embedded: &Bound<'_, PyAny>,
        vectors: Option<&Bound<'_, PyAny>>,
        removed: Listed<i64>,
        linked: Listed<i64>,
        links: Listed<(i64, i64, u8, f64)>,
    ) -> PyResult<()> {
        let (py, records) = (records.py(), &records_of(records)?);
        let (embedded, vectors) = &self.vectors_of(embedded, vectors)?;
        let (removed, linked) = (&removed.0, &linked.0);
        let links = &links.0.into_iter().map(link_of).collect::<PyResult<Vec<Link>>>()?;
        let batch = Batch { removed, records, embedded, vectors, linked, links };
        py.detach(|| self.0.apply(&batch)).map_err(raised)
    }

    #[doc = stub!("MemoryIndex.load")]
    #[pyo3(signature = (records, embedded, vectors, /))]
    fn load(
        &self,
        records: &Bound<'_, PyList>,
        embedded: &Bound<'_, PyAny>,
        vectors: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, records) = (records.py(), &records_of(records)?);
        let (embedded, vectors) = &self.vectors_of(embedded, vectors)?;
        let batch = Batch { records, embedded, vectors, ..Batch::default() };
        py.detach(|| self.0.load(&batch)).map_err(raised)
    }

    #[doc = stub!("MemoryIndex.raise_accesses")]
    #[pyo3(signature = (accesses, /))]
    fn raise_accesses(&self, py: Python<'_>, accesses: Listed<GivenAccess>) -> PyResult<()> {
        let accesses = accesses_of(accesses.0)?;
        py.detach(|| self.0.raise_accesses(&accesses)).map_err(raised)
    }

    #[doc = stub!("MemoryIndex.add_accesses")]
    #[pyo3(signature = (accesses, /))]
    fn add_accesses(&self, py: Python<'_>, accesses: Listed<GivenAccess>) -> PyResult<()> {
        let accesses = accesses_of(accesses.0)?;
        py.detach(|| self.0.add_accesses(&accesses)).map_err(raised)
    }

    #[doc = stub!("MemoryIndex.accesses")]
    #[pyo3(signature = (rows, /))]
    fn accesses(&self, rows: Listed<i64>) -> Vec<Option<(Option<i64>, i64)>> {
        let access = |access: Option<Access>| access.map(|access| (access.last, access.count));
        self.0.accesses(&rows.0).into_iter().map(access).collect()
    }

    #[doc = stub!("MemoryIndex.has_speakers")]
    #[getter]
    fn has_speakers(&self) -> bool {
        self.0.has_speakers()
    }

    #[doc = stub!("MemoryIndex.in_first_person")]
    #[pyo3(signature = (text, scope, now, deadline = None, /))]
    fn in_first_person(
        &self,
        py: Python<'_>,
        text: &str,
        scope: Given<GivenScope>,
        now: i64,
        deadline: Option<f64>,
    ) -> PyResult<String> {
        require_memory(self.0.bytes_of_reading(0, text.len()))?;
        let deadline = deadline_at(py, deadline)?;
        let ask = scope.0.ask(now, None, &deadline);
        py.detach(|| self.0.in_first_person(text, &ask)).map_err(raised)
    }

    #[doc = stub!("MemoryIndex.cosine_scale")]
    #[pyo3(signature = (scope, now, /))]
    fn cosine_scale<'py>(
        &self,
        py: Python<'py>,
        scope: Given<GivenScope>,
        now: i64,
    ) -> PyResult<Option<Scale<'py>>> {
        require_memory(self.0.bytes_of_reading(0, 0))?;
        let scale = py.detach(|| self.0.cosine_scale(scope.0.scope().user, now)).map_err(raised)?;
        Ok(scale.map(|(CosineScale { mean, spread, floor, lower_limit }, common)| {
            (mean, spread, floor, lower_limit, PyArray1::from_vec(py, common))
        }))
    }

    #[doc = stub!("MemoryIndex.rank")]
    #[pyo3(signature = (search, scope, now, vectors = None, context = None, limit = None, best_match = None, proposed = None, time_zone = None, /))]
    fn rank<'py>(
        &self,
        py: Python<'py>,
        search: Given<Search<'py>>,
        scope: Given<GivenScope>,
        now: i64,
        vectors: Option<&Bound<'py, PyAny>>,
        context: Option<&Bound<'py, PyAny>>,
        limit: Option<usize>,
        best_match: Option<f64>,
        proposed: Option<&Bound<'py, PyAny>>,
        time_zone: Option<&[u8]>,
    ) -> PyResult<Ranking<'py>> {
        let search = search.0;
        let changes = offset_changes(time_zone.unwrap_or_default());
        let proposed = proposed.map(arrays::ids).transpose()?;
        let deadline = deadline_at(py, search.deadline)?;
        let (vectors, context) = (self.query(vectors, "query")?, self.query(context, "context")?);
        let filter = search.filter.as_ref().map(filter::read).transpose()?;
        let (scoring, exclude) = (self.1.of(&search.ranking)?, search.excluded());
        let request = Request {
            ask: Ask {
                exclude: &exclude,
                time_zone: TimeZone::new(&changes),
                ..scope.0.ask(now, filter.as_ref(), &deadline)
            },
            scoring: &scoring,
            text: search.text.as_deref(),
            vectors: &vectors,
            context: &context,
            k: limit.unwrap_or(search.limit),
            offset: search.offset,
            min_similarity: search.min_similarity,
            min_score: search.min_score,
            scale: search.scale.as_ref().map(CosineScale::from),
            evidence: search.evidence.as_ref().map(EvidenceFloor::from),
            with_total: search.with_total,
            explains: search.with_reasons,
            sort_key: search.order.as_ref().map(sort_key_of).transpose()?,
            min_salience: search.min_salience,
            best_match: search.is_relative.then(|| best_match.unwrap_or(0.0)),
            takes_partial: search.takes_partial,
            proposed: proposed.as_deref(),
        };
        let answer = py.detach(|| self.0.rank(&request)).map_err(raised)?;
        answer_of(py, &answer, search.explain)
    }

    #[doc = stub!("MemoryIndex.filling")]
    #[pyo3(signature = (rows, max_tokens, /))]
    fn filling(
        &self,
        py: Python<'_>,
        rows: Listed<i64>,
        max_tokens: usize,
    ) -> PyResult<Vec<usize>> {
        py.detach(|| self.0.filling(&rows.0, max_tokens)).map_err(raised)
    }

    #[doc = stub!("MemoryIndex.selected")]
    #[pyo3(signature = (search, scope, now, few, /))]
    fn selected<'py>(
        &self,
        py: Python<'py>,
        search: Given<Search<'py>>,
        scope: Given<GivenScope>,
        now: i64,
        few: usize,
    ) -> PyResult<Option<(usize, Option<Bound<'py, PyAny>>)>> {
        let search = search.0;
        let deadline = deadline_at(py, search.deadline)?;
        let filter = search.filter.as_ref().map(filter::read).transpose()?;
        let exclude = search.excluded();
        let ask = Ask { exclude: &exclude, ..scope.0.ask(now, filter.as_ref(), &deadline) };
        let selected = py.detach(|| self.0.selected(&ask, few)).map_err(raised)?;
        Ok(selected.map(|selected| (selected.count, row_array(py, selected.rows))))
    }

    #[doc = stub!("MemoryIndex.listed")]
    #[pyo3(signature = (request, /))]
    fn listed<'py>(
        &self,
        py: Python<'py>,
        request: Given<ListRequest<'py>>,
    ) -> PyResult<Vec<GivenAccess>> {
        let filter = filter::read(&request.0.filters)?;
        let (ask, listing) = (request.0.ask(&filter), request.0.listing()?);
        let found = py.detach(|| self.0.listed(&ask, &listing)).map_err(raised)?;
        Ok(found.into_iter().map(|access| (access.row, access.last, access.count)).collect())
    }

    #[doc = stub!("MemoryIndex.counted")]
    #[pyo3(signature = (request, /))]
    fn counted<'py>(&self, py: Python<'py>, request: Given<ListRequest<'py>>) -> PyResult<usize> {
        let filter = filter::read(&request.0.filters)?;
        let ask = request.0.ask(&filter);
        py.detach(|| self.0.counted(&ask)).map_err(raised)
    }

    #[doc = stub!("MemoryIndex.distinct")]
    #[pyo3(signature = (request, field, prefix = None, /))]
    fn distinct<'py>(
        &self,
        py: Python<'py>,
        request: Given<ListRequest<'py>>,
        field: &Bound<'py, PyAny>,
        prefix: Option<&str>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, usize)>> {
        let filter = filter::read(&request.0.filters)?;
        let ask = request.0.ask(&filter);
        let mut values = DistinctValues::new(filter::field(field)?, prefix);
        py.detach(|| self.0.distinct(&ask, &mut values)).map_err(raised)?;
        page_of(py, &values, request.0.offset, request.0.limit)
    }

    #[doc = stub!("MemoryIndex.linked")]
    #[pyo3(signature = (request, /))]
    fn linked<'py>(
        &self,
        py: Python<'py>,
        request: Given<LinkSearch<'py>>,
    ) -> PyResult<(Bound<'py, PyList>, usize)> {
        let given = request.0;
        require_memory(self.0.bytes_of_reading(self.0.docids() / 8, 0))?; // links lead to fewer rows with less data
        let filter = given.filter.as_ref().map(filter::read).transpose()?;
        let (hops, deadline) = (given.hops()?, deadline_at(py, given.deadline)?);
        let ask = given.scope.ask(given.now, filter.as_ref(), &deadline);
        let found =
            py.detach(|| self.0.linked(&ask, given.row, &hops, given.limit)).map_err(raised)?;
        let hits = found.hits.iter().map(|hit| linked_of(py, hit)).collect::<PyResult<Vec<_>>>()?;
        Ok((PyList::new(py, hits)?, found.total))
    }

    #[doc = stub!("MemoryIndex.neighbours")]
    #[pyo3(signature = (request, /))]
    fn neighbours<'py>(
        &self,
        py: Python<'py>,
        request: Given<NeighbourSearch<'py>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let given = request.0;
        require_memory(self.0.bytes_of_reading(self.0.docids() / 8, 0))?; // as for linked rows
        let filter = given.filter.as_ref().map(filter::read).transpose()?;
        let (walk, deadline) = (given.hops.walk()?, deadline_at(py, given.deadline)?);
        let ask = given.scope.ask(given.now, filter.as_ref(), &deadline);
        let (starts, limit) = (given.starts(), given.hops.limit);
        let found = py.detach(|| self.0.neighbours(&ask, &starts, &walk, limit)).map_err(raised)?;
        let hits = found.iter().map(|hit| neighbour_of(py, hit)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, hits)
    }

    #[doc = stub!("MemoryIndex.surface_forms")]
    #[pyo3(signature = (text, tokens, /))]
    fn surface_forms(
        &self,
        py: Python<'_>,
        text: &str,
        tokens: Listed<PyBackedStr>,
    ) -> PyResult<Vec<(String, Vec<usize>)>> {
        require_memory(self.0.bytes_of_reading(0, text.len()))?;
        let found = py.detach(|| self.0.surface_forms(text, &tokens.0));
        Ok(found.into_iter().map(|form| (form.text, form.tokens)).collect())
    }

    #[doc = stub!("MemoryIndex.related")]
    #[pyo3(signature = (query, texts, scope, limit, /))]
    fn related(
        &self,
        py: Python<'_>,
        query: &str,
        texts: Listed<(PyBackedStr, f64)>,
        scope: Given<GivenScope>,
        limit: usize,
    ) -> PyResult<Vec<(String, f64)>> {
        let length: usize = texts.0.iter().map(|(text, _)| text.len()).sum();
        require_memory(self.0.bytes_of_reading(0, length.saturating_add(query.len())))?;
        let related = py.detach(|| self.0.related(query, &texts.0, scope.0.users(), limit));
        Ok(related.into_iter().map(weighed).collect())
    }

    #[doc = stub!("MemoryIndex.key_phrases")]
    #[pyo3(signature = (text, scope, limit, /))]
    fn key_phrases(
        &self,
        py: Python<'_>,
        text: &str,
        scope: Given<GivenScope>,
        limit: usize,
    ) -> PyResult<Vec<(String, f64)>> {
        require_memory(self.0.bytes_of_reading(0, text.len()))?;
        let phrases = py.detach(|| self.0.key_phrases(text, scope.0.users(), limit));
        Ok(phrases.into_iter().map(weighed).collect())
    }
}

impl PyMemoryIndex {
    fn query(&self, vectors: Option<&Bound<'_, PyAny>>, what: &'static str) -> PyResult<Vec<f32>> {
        match vectors {
            Some(vectors) => {
                arrays::vectors(vectors, self.0.dim(), what).map(|vectors| vectors.values)
            }
            None => Ok(Vec::new()),
        }
    }

    fn vectors_of(
        &self,
        embedded: &Bound<'_, PyAny>,
        vectors: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<i64>, Vec<f32>)> {
        let embedded = arrays::ids(embedded)?;
        let vectors = match vectors {
            Some(vectors) if !embedded.is_empty() => {
                arrays::vectors(vectors, self.0.dim(), "vectors")?.values
            }
            _ => Vec::new(),
        };
        Ok((embedded, vectors))
    }
}

/// Rows as int64, a bitmap as uint8, everything as nothing.
fn row_array(py: Python<'_>, rows: RowSet) -> Option<Bound<'_, PyAny>> {
    match rows {
        RowSet::Everything => None,
        RowSet::List(rows) => Some(PyArray1::from_vec(py, rows).into_any()),
        RowSet::Bitmap(bytes) => Some(PyArray1::from_vec(py, bytes).into_any()),
    }
}

fn weighed(Weighed { text, weight }: Weighed) -> (String, f64) {
    (text, weight)
}

fn linked_of<'py>(py: Python<'py>, hit: &LinkedHit) -> PyResult<Bound<'py, PyTuple>> {
    let kinds = PyTuple::new(py, hit.path.kinds())?;
    let (last, count) = hit.accessed;
    (hit.row, PyBytes::new(py, &hit.id), hit.strength, kinds, last, count).into_pyobject(py)
}

fn neighbour_of<'py>(py: Python<'py>, hit: &NeighbourHit) -> PyResult<Bound<'py, PyTuple>> {
    let (last, count) = hit.accessed;
    (hit.row, PyBytes::new(py, &hit.id), hit.score, hit.kind, hit.via, hit.depth, last, count)
        .into_pyobject(py)
}

/// The numbers of a scale of cosines, and the sum of the directions of the vectors.
type Scale<'py> = (f64, f64, f64, f64, Bound<'py, PyArray1<f32>>);

/// The hits, the total, whether the answer is partial, whether it is approximate, the share of
/// similarity, whether the evidence is below its floor, and whether the best is by another speaker.
type Ranking<'py> = (Bound<'py, PyList>, Option<usize>, bool, bool, Option<f64>, bool, bool);

fn answer_of<'py>(py: Python<'py>, answer: &Answer, explain: bool) -> PyResult<Ranking<'py>> {
    let hits =
        answer.hits.iter().map(|hit| hit_of(py, hit, explain)).collect::<PyResult<Vec<_>>>()?;
    let Answer { total, is_partial, is_approximate, share, evidence, .. } = *answer;
    let hits = PyList::new(py, hits)?;
    let (is_weak, is_by_another) = (evidence == Evidence::Weak, evidence == Evidence::ByAnother);
    Ok((hits, total, is_partial, is_approximate, share, is_weak, is_by_another))
}

fn hit_of<'py>(py: Python<'py>, hit: &MemoryHit, explain: bool) -> PyResult<Bound<'py, PyTuple>> {
    let components = components_of(py, &hit.components, explain)?;
    let (last, count) = hit.accessed;
    let why = hit.why.as_ref().map(|why| why_of(py, why)).transpose()?;
    let (id, similarity) = (PyBytes::new(py, &hit.id), hit.components.similarity);
    (hit.row, id, hit.score, components, last, count, similarity, why, hit.chunk).into_pyobject(py)
}

/// The reasons for a score: its parts, the words with their turns, the neighbour, the start and end of
/// the date, the role, the speaker.
fn why_of<'py>(py: Python<'py>, why: &Why) -> PyResult<Bound<'py, PyTuple>> {
    let parts = PyDict::new(py);
    for (name, value) in named(py, &why.shares) {
        if let Some(value) = value {
            parts.set_item(name, value)?;
        }
    }
    if why.clamped != 0.0 {
        parts.set_item(intern!(py, "clamped"), why.clamped)?;
    }
    let words = why.words.iter().map(|word| (&word.token, &word.term, word.turn));
    let words = PyList::new(py, words)?;
    let neighbour = why.neighbour.map(|id| PyBytes::new(py, &id));
    let date = why.date.map(|range| (range.start, range.end));
    let role = why.role.map(|role| match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    });
    (parts, words, neighbour, date, role, why.speaker.as_deref()).into_pyobject(py)
}

/// The parts of a score by their names.
fn named<'py>(
    py: Python<'py>,
    components: &Components,
) -> [(&'py Bound<'py, PyString>, Option<f64>); 16] {
    [
        (intern!(py, "similarity"), components.similarity),
        (intern!(py, "keyword"), components.keyword),
        (intern!(py, "share"), components.share),
        (intern!(py, "chunks"), components.chunks),
        (intern!(py, "neighbours"), components.neighbours),
        (intern!(py, "question"), components.question),
        (intern!(py, "role"), components.role),
        (intern!(py, "date"), components.date),
        (intern!(py, "speaker"), components.speaker),
        (intern!(py, "answer_type"), components.answer_type),
        (intern!(py, "relevance"), components.relevance),
        (intern!(py, "recency"), components.recency),
        (intern!(py, "importance"), components.importance),
        (intern!(py, "access"), components.access),
        (intern!(py, "salience"), components.salience),
        (intern!(py, "context"), components.context),
    ]
}

fn components_of<'py>(
    py: Python<'py>,
    components: &Components,
    explain: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let clamped = |part: Option<f64>| part.map(|part| part.clamp(0.0, 1.0));
    let shown = Components {
        similarity: clamped(components.similarity),
        relevance: clamped(components.relevance),
        context: clamped(components.context),
        ..*components
    };
    let (all, dict) = (named(py, &shown), PyDict::new(py));
    let returned = if explain { all.len() } else { MAIN_COMPONENTS };
    for (name, value) in all.into_iter().take(returned) {
        if let Some(value) = value {
            dict.set_item(name, value)?;
        }
    }
    Ok(dict)
}
