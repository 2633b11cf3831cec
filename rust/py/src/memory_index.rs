//! `MemoryIndex`: the core's index of an agent's memories.

use mnemic_core::columns::{Access, Ask, Record, Scope, Users};
use mnemic_core::filter::Filter;
use mnemic_core::lexical::Weighed;
use mnemic_core::memory::links::{Direction, Hops, Link, MAX_DEPTH};
use mnemic_core::rank::sort_key::Order;
use mnemic_core::system::memory_budget::with_room;
use mnemic_core::text::{Analysis, Language};
use mnemic_core::{
    Answer, Components, Error, KeywordFields, LinkedHit, Links, MemoryHit, MemoryIndex, Ranking,
    Recency, Request, Salience, Session, Weights,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::arrays;
use crate::errors::{InvalidArgumentError, raised, room, root};
use crate::filter;

/// Names of the values of a record, in their order.
pub(crate) const RECORD_COLUMNS: [&str; 29] = [
    "row",
    "agent_id",
    "id",
    "created_at",
    "updated_at",
    "content",
    "user_id",
    "project_id",
    "session_id",
    "memory_type",
    "status",
    "importance",
    "last_accessed_at",
    "access_count",
    "forgotten_at",
    "expires_at",
    "role",
    "speaker",
    "message_id",
    "position",
    "category",
    "scope",
    "version",
    "supersedes",
    "is_sensitive",
    "is_encrypted",
    "type_name",
    "tags",
    "metadata",
];

/// So many of the components are told without being asked for: the first of them.
const MAIN_COMPONENTS: usize = 2;

#[pyclass(frozen, name = "MemoryIndex", module = "mnemic._core")]
pub(crate) struct PyMemoryIndex(MemoryIndex);

#[pymethods]
impl PyMemoryIndex {
    #[new]
    #[pyo3(signature = (dim, /, *, language = Some("english")),
        text_signature = "(dim, /, *, language='english')")]
    fn new(dim: Option<usize>, language: Option<&str>) -> PyResult<Self> {
        let language = language.map(language_named).transpose()?;
        MemoryIndex::new(dim, Analysis { language }).map(Self).map_err(raised)
    }

    #[getter]
    fn dim(&self) -> usize {
        self.0.dim()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    #[pyo3(signature = (scope, now, /))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
    fn next_expiry(&self, scope: Given<GivenScope>, now: i64) -> Option<i64> {
        self.0.next_expiry(scope.0.users(), now)
    }

    #[getter]
    fn slots(&self) -> usize {
        self.0.slots()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn unembedded(&self) -> Vec<i64> {
        self.0.unembedded()
    }

    #[pyo3(signature = (records, embedded, vectors, gone, linked = Listed(vec![]), links = Listed(vec![]), /),
        text_signature = "($self, records, embedded, vectors, gone, linked=[], links=[], /)")]
    #[expect(clippy::too_many_arguments, reason = "the parts of a batch")]
    fn apply(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyList>,
        embedded: &Bound<'_, PyAny>,
        vectors: Option<&Bound<'_, PyAny>>,
        gone: Listed<i64>,
        linked: Listed<i64>,
        links: Listed<(i64, i64, u8, f64)>,
    ) -> PyResult<()> {
        let (gone, linked) = (gone.0, linked.0);
        let records = records_of(records)?;
        let (embedded, vectors) = self.vectors_of(embedded, vectors)?;
        let links = links.0.into_iter().map(link_of).collect::<PyResult<Vec<Link>>>()?;
        let links = Links { from: &linked, links: &links };
        py.detach(|| self.0.apply_with_links(&gone, &records, &embedded, &vectors, &links))
            .map_err(raised)
    }

    #[pyo3(signature = (records, embedded, vectors, /))]
    fn load(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyList>,
        embedded: &Bound<'_, PyAny>,
        vectors: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let records = records_of(records)?;
        let (embedded, vectors) = self.vectors_of(embedded, vectors)?;
        py.detach(|| self.0.load(&records, &embedded, &vectors)).map_err(raised)
    }

    #[pyo3(signature = (accesses, /))]
    fn raise_accesses(&self, py: Python<'_>, accesses: Listed<GivenAccess>) -> PyResult<()> {
        let accesses = accesses_of(accesses.0)?;
        py.detach(|| self.0.raise_accesses(&accesses)).map_err(raised)
    }

    #[pyo3(signature = (accesses, /))]
    fn add_accesses(&self, py: Python<'_>, accesses: Listed<GivenAccess>) -> PyResult<()> {
        let accesses = accesses_of(accesses.0)?;
        py.detach(|| self.0.add_accesses(&accesses)).map_err(raised)
    }

    #[pyo3(signature = (rows, /))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
    fn accesses(&self, rows: Listed<i64>) -> Vec<Option<(Option<i64>, i64)>> {
        let access = |access: Option<Access>| access.map(|access| (access.last, access.count));
        self.0.accesses(&rows.0).into_iter().map(access).collect()
    }

    #[pyo3(signature = (text, scope, now, /))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
    fn in_first_person(
        &self,
        py: Python<'_>,
        text: &str,
        scope: Given<GivenScope>,
        now: i64,
    ) -> PyResult<String> {
        room(self.0.bytes_of_reading(0, text.len()))?;
        let ask = Ask { scope: scope.0.scope(), now, ..Ask::default() };
        Ok(py.detach(|| self.0.in_first_person(text, &ask)))
    }

    #[pyo3(signature = (wanted, /))]
    fn rank<'py>(
        &self,
        py: Python<'py>,
        wanted: Given<Wanted<'py>>,
    ) -> PyResult<(Bound<'py, PyList>, Option<usize>)> {
        let wanted = wanted.0;
        let dim = self.0.dim();
        let vectors = |given: &Option<Bound<'_, PyAny>>, what| match given {
            Some(given) => arrays::vectors(given, dim, what).map(|vectors| vectors.values),
            None => Ok(Vec::new()),
        };
        let (query, context) =
            (vectors(&wanted.vectors, "query")?, vectors(&wanted.context, "context")?);
        let filter = wanted.filter.as_ref().map(filter::read).transpose()?;
        let ranking = wanted.ranking.ranking()?;
        let request = Request {
            ask: wanted.ask(filter.as_ref()),
            ranking: &ranking,
            text: wanted.text.as_deref(),
            vectors: &query,
            context: &context,
            k: wanted.limit,
            min_similarity: wanted.min_similarity,
            min_score: wanted.min_score,
            with_total: wanted.with_total,
            order: wanted.order.as_ref().map(GivenOrder::order).transpose()?,
            min_salience: wanted.min_salience,
            best_match: wanted.best_match,
        };
        let answer = py.detach(|| self.0.rank(&request)).map_err(raised)?;
        answer_of(py, &answer, wanted.explain)
    }

    #[pyo3(signature = (wanted, /))]
    fn linked<'py>(
        &self,
        py: Python<'py>,
        wanted: Given<WantedLinks<'py>>,
    ) -> PyResult<(Bound<'py, PyList>, usize)> {
        let wanted = wanted.0;
        room(self.0.bytes_of_reading(self.0.slots() / 8, 0))?; // links lead to fewer, and tell less
        let filter = wanted.filter.as_ref().map(filter::read).transpose()?;
        let hops = wanted.hops()?;
        let ask = Ask {
            scope: wanted.scope.scope(),
            filter: filter.as_ref(),
            now: wanted.now,
            ..Ask::default()
        };
        let found = py.detach(|| self.0.linked(&ask, wanted.row, &hops, wanted.limit));
        let hits = found.hits.iter().map(|hit| linked_of(py, hit)).collect::<PyResult<Vec<_>>>()?;
        Ok((PyList::new(py, hits)?, found.total))
    }

    #[pyo3(signature = (query, texts, scope, limit, /))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
    fn related(
        &self,
        py: Python<'_>,
        query: &str,
        texts: Listed<(PyBackedStr, f64)>,
        scope: Given<GivenScope>,
        limit: usize,
    ) -> PyResult<Vec<(String, f64)>> {
        let length: usize = texts.0.iter().map(|(text, _)| text.len()).sum();
        room(self.0.bytes_of_reading(0, length.saturating_add(query.len())))?;
        let related = py.detach(|| self.0.related(query, &texts.0, scope.0.users(), limit));
        Ok(related.into_iter().map(weighed).collect())
    }

    #[pyo3(signature = (text, scope, limit, /))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are values")]
    fn key_phrases(
        &self,
        py: Python<'_>,
        text: &str,
        scope: Given<GivenScope>,
        limit: usize,
    ) -> PyResult<Vec<(String, f64)>> {
        room(self.0.bytes_of_reading(0, text.len()))?;
        let phrases = py.detach(|| self.0.key_phrases(text, scope.0.users(), limit));
        Ok(phrases.into_iter().map(weighed).collect())
    }
}

/// Row, last access and number of accesses.
type GivenAccess = (i64, Option<i64>, i64);

fn accesses_of(given: Vec<GivenAccess>) -> PyResult<Vec<Access>> {
    let access = |(row, last, count): GivenAccess| {
        let last = last.map(time_of).transpose()?;
        Ok(Access { row, last, count: count_of(count)? })
    };
    given.into_iter().map(access).collect()
}

fn link_of((from, to, kind, strength): (i64, i64, u8, f64)) -> PyResult<Link> {
    if (0.0..=1.0).contains(&strength) {
        return Ok(Link { from, to, kind, strength });
    }
    Err(PyValueError::new_err("a link whose strength is not from 0 to 1"))
}

impl PyMemoryIndex {
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

fn records_of(given: &Bound<'_, PyList>) -> PyResult<Vec<Record>> {
    room(given.len().saturating_mul(size_of::<Record>()))?;
    given.iter().map(|record| record_of(&record)).collect()
}

fn weighed(Weighed { text, weight }: Weighed) -> (String, f64) {
    (text, weight)
}

fn linked_of<'py>(py: Python<'py>, hit: &LinkedHit) -> PyResult<Bound<'py, PyTuple>> {
    let kinds = PyTuple::new(py, hit.path.kinds())?;
    (hit.row, PyBytes::new(py, &hit.id), hit.strength, kinds).into_pyobject(py)
}

fn language_named(name: &str) -> PyResult<Language> {
    Language::from_name(name).ok_or_else(|| {
        InvalidArgumentError::new_err(format!("there is no stemmer for the language {name:?}"))
    })
}

/// An argument taken apart, whose interruption stays one.
struct Given<T>(T);

impl<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'a, 'py> for Given<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract().map(Self).map_err(|error| root(given.py(), error))
    }
}

/// A list of any length, copied into memory that was asked for.
struct Listed<T>(Vec<T>);

impl<'py, T> FromPyObject<'_, 'py> for Listed<T>
where
    T: FromPyObjectOwned<'py, Error: Into<PyErr>>,
{
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given = given.to_owned();
        let mut values = with_room(given.len()?).map_err(raised)?;
        for value in given.try_iter()? {
            values.push(value?.extract().map_err(Into::into)?);
        }
        Ok(Self(values))
    }
}

/// What `mnemic.index.base.Wanted` holds.
#[derive(FromPyObject)]
struct Wanted<'py> {
    scope: GivenScope,
    now: i64,
    limit: usize,
    ranking: GivenRanking,
    text: Option<String>,
    vectors: Option<Bound<'py, PyAny>>,
    context: Option<Bound<'py, PyAny>>,
    #[pyo3(attribute("where"))]
    filter: Option<Bound<'py, PyAny>>,
    exclude: Listed<[u8; 16]>,
    min_similarity: Option<f64>,
    min_score: Option<f64>,
    with_total: bool,
    order: Option<GivenOrder>,
    min_salience: Option<f64>,
    best_match: Option<f64>,
    explain: bool,
}

#[derive(FromPyObject)]
struct GivenScope {
    user_id: Option<String>,
    project_id: Option<String>,
    session_id: Option<String>,
    all_users: bool,
}

impl GivenScope {
    fn users(&self) -> Users<'_> {
        match &self.user_id {
            Some(name) => Users::One(name),
            None if self.all_users => Users::All,
            None => Users::Nobody,
        }
    }

    fn scope(&self) -> Scope<'_> {
        let user = self.users();
        let (project, session) = (self.project_id.as_deref(), self.session_id.as_deref());
        Scope { user, project, session }
    }
}

impl Wanted<'_> {
    fn ask<'a>(&'a self, filter: Option<&'a Filter>) -> Ask<'a> {
        let (scope, exclude) = (self.scope.scope(), &self.exclude.0);
        Ask { scope, filter, exclude, now: self.now, since: None, until: None }
    }
}

/// What `mnemic.index.base.WantedLinks` holds.
#[derive(FromPyObject)]
struct WantedLinks<'py> {
    scope: GivenScope,
    now: i64,
    row: i64,
    direction: String,
    kinds: u32,
    depth: usize,
    limit: usize,
    #[pyo3(attribute("where"))]
    filter: Option<Bound<'py, PyAny>>,
}

impl WantedLinks<'_> {
    fn hops(&self) -> PyResult<Hops> {
        let direction = match self.direction.as_str() {
            "out" => Direction::Out,
            "in" => Direction::In,
            "both" => Direction::Both,
            other => return Err(PyValueError::new_err(format!("there is no direction {other:?}"))),
        };
        if !(1..=MAX_DEPTH).contains(&self.depth) {
            let message = format!("depth must be from 1 to {MAX_DEPTH}, got {}", self.depth);
            return Err(InvalidArgumentError::new_err(message));
        }
        Ok(Hops { direction, kinds: self.kinds, depth: self.depth })
    }
}

#[derive(FromPyObject)]
struct GivenOrder {
    value: String,
}

impl GivenOrder {
    fn order(&self) -> PyResult<Order> {
        match self.value.as_str() {
            "newest" => Ok(Order::Newest),
            "oldest" => Ok(Order::Oldest),
            "accessed" => Ok(Order::Accessed),
            "access_count" => Ok(Order::AccessCount),
            "importance" => Ok(Order::Importance),
            "salience" => Ok(Order::Salience),
            other => Err(PyValueError::new_err(format!("there is no order {other:?}"))),
        }
    }
}

#[derive(FromPyObject)]
struct GivenRanking {
    similarity: f64,
    keywords: GivenKeywords,
    session: GivenSession,
    leaves_names_out: bool,
    weights: GivenWeights,
    recency: GivenRecency,
    salience: GivenSalience,
}

#[derive(FromPyObject)]
struct GivenKeywords {
    words: f64,
    grams: f64,
    pairs: f64,
    previous: f64,
    second: f64,
    stop_words: f64,
    common: f64,
    near: f64,
    sharpness: f64,
}

#[derive(FromPyObject)]
struct GivenSession {
    previous: f64,
    next: f64,
    answer: f64,
    second: f64,
    question: f64,
    date: f64,
    speaker: f64,
    kind: f64,
    alone: f64,
}

#[derive(FromPyObject)]
struct GivenWeights {
    relevance: f64,
    recency: f64,
    importance: f64,
    access: f64,
    salience: f64,
    context: f64,
}

#[derive(FromPyObject)]
struct GivenRecency {
    curve: GivenCurve,
    days: f64,
}

#[derive(FromPyObject)]
struct GivenCurve {
    value: String,
}

#[derive(FromPyObject)]
pub(crate) struct GivenSalience {
    recency: f64,
    frequency: f64,
    importance: f64,
    half_life_days: f64,
    frequency_max_count: f64,
}

impl GivenSalience {
    fn salience(&self) -> Salience {
        Salience {
            recency: self.recency,
            frequency: self.frequency,
            importance: self.importance,
            days: self.half_life_days,
            most: self.frequency_max_count,
        }
    }
}

/// Recency, frequency and weighted mean of one memory's salience.
#[pyfunction]
#[pyo3(signature = (salience, /, *, created_at, last_accessed_at, access_count, importance, now))]
#[expect(clippy::needless_pass_by_value, reason = "extracted from Python")]
pub(crate) fn salience_parts(
    salience: GivenSalience,
    created_at: i64,
    last_accessed_at: Option<i64>,
    access_count: i64,
    importance: f64,
    now: i64,
) -> (f64, f64, f64) {
    let parts =
        salience.salience().parts(created_at, last_accessed_at, access_count, importance, now);
    (parts.recency, parts.frequency, parts.mean)
}

impl GivenRanking {
    fn ranking(&self) -> PyResult<Ranking> {
        let keywords = &self.keywords;
        let session = &self.session;
        let GivenWeights { relevance, recency, importance, access, salience, context } =
            self.weights;
        Ok(Ranking {
            similarity: self.similarity,
            keywords: KeywordFields {
                words: keywords.words,
                grams: keywords.grams,
                pairs: keywords.pairs,
                previous: keywords.previous,
                second: keywords.second,
                stop_words: keywords.stop_words,
                common: keywords.common,
                near: keywords.near,
                sharpness: keywords.sharpness,
            },
            leaves_names_out: self.leaves_names_out,
            session: Session {
                previous: session.previous,
                next: session.next,
                answer: session.answer,
                second: session.second,
                question: session.question,
                date: session.date,
                speaker: session.speaker,
                kind: session.kind,
                alone: session.alone,
            },
            weights: Weights { relevance, recency, importance, access, salience, context },
            recency: self.recency.recency()?,
            salience: self.salience.salience(),
        })
    }
}

impl GivenRecency {
    fn recency(&self) -> PyResult<Recency> {
        let days = self.days;
        match self.curve.value.as_str() {
            "created_linear" => Ok(Recency::CreatedLinear { days }),
            "created_half_life" => Ok(Recency::CreatedHalfLife { days }),
            "accessed_half_life" => Ok(Recency::AccessedHalfLife { days }),
            "newest_rank" => Ok(Recency::NewestRank),
            other => {
                let message = format!("there is no curve of recency {other:?}");
                Err(InvalidArgumentError::new_err(message))
            }
        }
    }
}

/// A record from its values in the order of [`RECORD_COLUMNS`].
fn record_of(given: &Bound<'_, PyAny>) -> PyResult<Record> {
    let given = given.cast::<PyTuple>()?;
    if given.len() < RECORD_COLUMNS.len() {
        let (found, wanted) = (given.len(), RECORD_COLUMNS.len());
        let message = format!("a record has {wanted} values, found {found}");
        return Err(InvalidArgumentError::new_err(message));
    }
    let at = |at: usize| given.get_borrowed_item(at);
    let text = |place: usize| text_of(&*at(place)?);
    let moment = |place: usize| at(place)?.extract::<Option<i64>>();
    let time = |place: usize| moment(place)?.map(time_of).transpose();
    Ok(Record {
        row: at(0)?.extract()?,
        id: at(2)?.extract()?,
        created_at: time_of(at(3)?.extract()?)?,
        updated_at: time_of(at(4)?.extract()?)?,
        content: content_of(at(5)?)?,
        user: text(6)?,
        project: text(7)?,
        session: text(8)?,
        kind: at(9)?.extract()?,
        status: at(10)?.extract()?,
        importance: importance_of(at(11)?.extract()?)?,
        last_accessed_at: time(12)?,
        access_count: count_of(at(13)?.extract()?)?,
        expires_at: time(15)?,
        role: text(16)?,
        speaker: text(17)?,
        position: moment(19)?,
        category: text(20)?,
        scope: text(21)?,
        version: at(22)?.extract()?,
        sensitive: at(24)?.extract::<i64>()? != 0,
        tags: text(27)?,
        metadata: text(28)?,
    })
}

/// Copies a text that may be megabytes long.
fn text_of(given: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if given.is_none() {
        return Ok(None);
    }
    copied(given.cast::<PyString>()?.to_str()?).map(Some)
}

fn copied(text: &str) -> PyResult<String> {
    let mut copy = String::new();
    let bytes = text.len();
    copy.try_reserve_exact(bytes).map_err(|_| raised(Error::OutOfMemory { bytes }))?;
    copy.push_str(text);
    Ok(copy)
}

/// Refuses what no memory can have been stored with.
fn importance_of(given: f64) -> PyResult<f64> {
    if (0.0..=1.0).contains(&given) {
        return Ok(given);
    }
    Err(PyValueError::new_err(format!("an importance of {given}")))
}

/// Microseconds since 1970 at which the years 1 and 10000 begin.
const TIMES: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_800_000_000;

fn time_of(given: i64) -> PyResult<i64> {
    if TIMES.contains(&given) {
        return Ok(given);
    }
    Err(PyValueError::new_err("a time outside the years 1 to 9999"))
}

/// As in `mnemic.model.checks`.
const MAX_CONTENT_BYTES: usize = 10 * 1024 * 1024;

/// The length is looked at before the text is copied.
fn content_of(given: Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    let given = given.cast::<PyString>()?;
    let text = given.to_cow()?;
    if text.len() > MAX_CONTENT_BYTES {
        return Err(PyValueError::new_err("a content of more than 10 MB"));
    }
    copied(&text)
}

fn count_of(given: i64) -> PyResult<i64> {
    if given >= 0 {
        return Ok(given);
    }
    Err(PyValueError::new_err(format!("an access count of {given}")))
}

fn answer_of<'py>(
    py: Python<'py>,
    answer: &Answer,
    explain: bool,
) -> PyResult<(Bound<'py, PyList>, Option<usize>)> {
    let hits =
        answer.hits.iter().map(|hit| hit_of(py, hit, explain)).collect::<PyResult<Vec<_>>>()?;
    Ok((PyList::new(py, hits)?, answer.total))
}

fn hit_of<'py>(py: Python<'py>, hit: &MemoryHit, explain: bool) -> PyResult<Bound<'py, PyTuple>> {
    let components = components_of(py, &hit.components, explain)?;
    (hit.row, PyBytes::new(py, &hit.id), hit.score, components).into_pyobject(py)
}

fn components_of<'py>(
    py: Python<'py>,
    components: &Components,
    explain: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    let all = [
        (intern!(py, "similarity"), components.similarity.map(|cosine| cosine.clamp(0.0, 1.0))),
        (intern!(py, "keyword"), components.keyword),
        (intern!(py, "neighbours"), components.neighbours),
        (intern!(py, "question"), components.question),
        (intern!(py, "date"), components.date),
        (intern!(py, "speaker"), components.speaker),
        (intern!(py, "kind"), components.kind),
        (intern!(py, "relevance"), components.relevance.map(|sum| sum.clamp(0.0, 1.0))),
        (intern!(py, "recency"), components.recency),
        (intern!(py, "importance"), components.importance),
        (intern!(py, "access"), components.access),
        (intern!(py, "salience"), components.salience),
        (intern!(py, "context"), components.context.map(|cosine| cosine.clamp(0.0, 1.0))),
    ];
    let told = if explain { all.len() } else { MAIN_COMPONENTS };
    for (name, value) in all.into_iter().take(told) {
        if let Some(value) = value {
            named.set_item(name, value)?;
        }
    }
    Ok(named)
}
