//! The texts of one block of docids, and the metadata values read from them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::collections::cow_vec::BLOCK_VALUES;
use crate::filter::{Json, Number, Path};

use super::bitmap::Bitmap;

/// Paths into metadata whose values a block caches; filters name few.
const KEPT_PATHS: usize = 16;

/// Distinct values that codes can name.
const MAX_VALUES: usize = u16::MAX as usize;

/// Content and metadata of each docid, joined in one text.
///
/// A text is set once, so snapshots that differ only in length share these. If two of them set the
/// same docid, the second makes a copy.
pub(crate) struct ContentColumn {
    docids: Box<[OnceLock<Arc<str>>]>,
    read: Mutex<Vec<(Path, Arc<PathColumn>)>>,
}

/// Values at one path into the metadata, for the docids read so far: each distinct value is held once, so
/// that a test evaluates it once.
#[derive(Clone)]
pub(crate) struct PathColumn {
    known: Bitmap,
    codes: Box<[u16; BLOCK_VALUES]>,
    values: Vec<Json>,
}

impl ContentColumn {
    pub(crate) fn new() -> Self {
        Self { docids: Box::default(), read: Mutex::default() }
    }

    /// The column of these texts, with capacity for more unless they fill a block.
    pub(super) fn of(texts: Vec<Arc<str>>) -> Self {
        let capacity = texts.len().next_power_of_two().max(16);
        let vacant = capacity - texts.len();
        let docids = texts.into_iter().map(OnceLock::from);
        let docids = docids.chain((0..vacant).map(|_| OnceLock::new()));
        Self { docids: docids.collect(), read: Mutex::default() }
    }

    /// Whether the first docids have texts, so many, and no others.
    pub(super) fn has_len(&self, len: usize) -> bool {
        let has = |at: usize| self.docids.get(at).is_some_and(|docid| docid.get().is_some());
        !has(len) && len.checked_sub(1).is_none_or(has)
    }

    /// The text of a docid, to be shared.
    pub(super) fn shared(&self, at: usize) -> Arc<str> {
        let text = self.docids.get(at).and_then(OnceLock::get);
        text.map_or_else(|| "".into(), Arc::clone)
    }

    pub(crate) fn get(&self, at: usize) -> &str {
        self.docids.get(at).and_then(OnceLock::get).map_or("", |text| text)
    }

    /// Set the text of the next docid, in place where possible.
    pub(crate) fn push(this: &mut Arc<Self>, at: usize, text: &Arc<str>) {
        if this.docids.get(at).is_none_or(|docid| docid.set(Arc::clone(text)).is_err()) {
            *this = Arc::new(this.with(at, text, &Bitmap::first(at)));
        }
    }

    /// A copy with another text for one docid, and the given others.
    pub(crate) fn with(&self, at: usize, text: &Arc<str>, kept: &Bitmap) -> Self {
        let mut kept = *kept;
        kept.unset(at);
        let capacity = (at + 1).next_power_of_two().max(16).max(self.docids.len());
        let docids: Box<[OnceLock<Arc<str>>]> = (0..capacity).map(|_| OnceLock::new()).collect();
        let own = kept.docids().filter_map(|at| Some((at, self.docids.get(at)?.get()?)));
        for (at, text) in own.chain([(at, text)]) {
            docids[at].get_or_init(|| Arc::clone(text));
        }
        let read = self.read.lock();
        let read = read.iter().map(|(path, column)| (path.clone(), column.only(&kept))).collect();
        Self { docids, read: Mutex::new(read) }
    }

    /// The values at a path of at least the given docids; `metadata` cuts the metadata out of a
    /// text.
    pub(crate) fn at_path<'text>(
        &'text self,
        path: &[Box<str>],
        among: &Bitmap,
        metadata: impl Fn(usize, &'text str) -> &'text str,
    ) -> Arc<PathColumn> {
        let known = self
            .read
            .lock()
            .iter()
            .find(|(of, _)| **of == *path)
            .map(|(_, column)| Arc::clone(column));
        let missing = known.as_ref().map_or(*among, |column| among.without(&column.known));
        match known {
            Some(column) if missing.is_empty() => column,
            known => {
                let mut column = known.map_or_else(PathColumn::new, |column| (*column).clone());
                column.read(&missing, |at| Json::at_path(metadata(at, self.get(at)), path));
                self.keep(path, Arc::new(column))
            }
        }
    }

    fn keep(&self, path: &[Box<str>], column: Arc<PathColumn>) -> Arc<PathColumn> {
        let mut read = self.read.lock();
        read.retain(|(of, _)| **of != *path);
        if read.len() == KEPT_PATHS {
            read.remove(0);
        }
        read.push((path.into(), Arc::clone(&column)));
        column
    }

    /// Bytes of memory, without the contents and metadata themselves.
    pub(crate) fn bytes(&self) -> usize {
        let read = self.read.lock();
        let a_key = size_of::<Box<str>>();
        let of_path =
            |path: &[Box<str>]| -> usize { path.iter().map(|key| a_key + key.len()).sum() };
        let columns: usize = read.iter().map(|(path, column)| of_path(path) + column.bytes()).sum();
        let texts = self.docids.iter().filter(|docid| docid.get().is_some()).count();
        size_of_val(&*self.docids) + texts * COUNTS_OF_ARC + columns
    }
}

impl Serialize for ContentColumn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<&Arc<str>> = self.docids.iter().map_while(OnceLock::get).collect();
        texts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContentColumn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<&str>::deserialize(deserializer)?;
        Ok(Self::of(texts.into_iter().map(Arc::from).collect()))
    }
}

/// Bytes before the value of an `Arc`.
const COUNTS_OF_ARC: usize = 2 * size_of::<usize>();

impl PathColumn {
    /// An empty column; the first value belongs to docids without one at the path.
    fn new() -> Self {
        Self { known: Bitmap::NONE, codes: Box::new([0; BLOCK_VALUES]), values: vec![Json::Null] }
    }

    /// Keep the docids whose value passes; each distinct value is tested once.
    pub(crate) fn keep(&self, among: &Bitmap, test: impl Fn(&Json) -> bool) -> Bitmap {
        let passed: Vec<bool> = self.values.iter().map(test).collect();
        if !passed.contains(&true) {
            return Bitmap::NONE;
        }
        among.keep(&self.codes[..], |code| passed[usize::from(code)])
    }

    /// The values of some docids, and how many of these have each; equal ones may repeat.
    pub(crate) fn counts(&self, among: &Bitmap) -> impl Iterator<Item = (&Json, usize)> {
        let mut counts = vec![0; self.values.len()];
        for at in among.docids() {
            counts[usize::from(self.codes[at])] += 1;
        }
        self.values.iter().zip(counts).filter(|(_, count)| *count > 0)
    }

    fn only(&self, kept: &Bitmap) -> Arc<Self> {
        if self.values.len() > 2 * BLOCK_VALUES {
            return Arc::new(Self::new()); // mostly values of texts that are gone
        }
        Arc::new(Self { known: self.known.and(kept), ..self.clone() })
    }

    fn read(&mut self, docids: &Bitmap, value: impl Fn(usize) -> Json) {
        let mut codes: HashMap<Distinct, u16> = HashMap::new();
        for (code, value) in self.values.iter().enumerate().take(MAX_VALUES) {
            codes.extend(Distinct::of(value).map(|value| (value, code as u16)));
        }
        for at in docids.docids() {
            let value = value(at);
            let distinct = Distinct::of(&value);
            let known = distinct.as_ref().and_then(|value| codes.get(value)).copied();
            let code = known.unwrap_or(self.values.len() as u16);
            if known.is_none() {
                codes.extend(distinct.map(|value| (value, code)));
                self.values.push(value);
            }
            self.codes[at] = code;
        }
        self.known = self.known.or(docids);
    }

    fn bytes(&self) -> usize {
        let values: usize = self.values.iter().map(Json::bytes).sum();
        size_of_val(&*self.codes) + self.values.capacity() * size_of::<Json>() + values
    }
}

/// A value that others are often equal to.
#[derive(PartialEq, Eq, Hash)]
enum Distinct {
    Null,
    Bool(bool),
    Whole(i64),
    Text(Box<str>),
}

impl Distinct {
    fn of(value: &Json) -> Option<Self> {
        match value {
            Json::Null => Some(Self::Null),
            Json::Bool(value) => Some(Self::Bool(*value)),
            Json::Number(Number::Whole(whole)) => Some(Self::Whole(*whole)),
            Json::Text(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(count: usize) -> Arc<ContentColumn> {
        let mut texts = Arc::new(ContentColumn::new());
        for at in 0..count {
            ContentColumn::push(&mut texts, at, &format!("{{\"k\":{}}}", at % 3).into());
        }
        texts
    }

    fn equal_to_one(texts: &ContentColumn, among: &Bitmap) -> Vec<usize> {
        let column = texts.at_path(&["k".into()], among, |_, text| text);
        column.keep(among, |value| *value == Json::Number(Number::Whole(1))).docids().collect()
    }

    #[test]
    fn two_that_set_the_same_docid_do_not_see_each_other() {
        let mut one = texts_of(20);
        let mut other = Arc::clone(&one);
        ContentColumn::push(&mut one, 20, &"{\"k\":1}".into());
        assert!(Arc::ptr_eq(&one, &other), "there is capacity, so nothing is copied");
        assert_eq!(equal_to_one(&one, &Bitmap::first(21)).last(), Some(&20));
        ContentColumn::push(&mut other, 20, &"{\"k\":2}".into());
        assert_eq!((one.get(20), other.get(20)), ("{\"k\":1}", "{\"k\":2}"));
        assert_eq!(equal_to_one(&other, &Bitmap::first(21)).last(), Some(&19));
        assert_eq!(equal_to_one(&one, &Bitmap::first(21)).last(), Some(&20));
    }

    #[test]
    fn a_path_is_read_for_the_docids_that_are_asked_for() {
        let texts = texts_of(30);
        assert_eq!(equal_to_one(&texts, &Bitmap::first(5)), [1, 4]);
        let known = |texts: &ContentColumn| texts.read.lock()[0].1.known;
        assert_eq!(known(&texts), Bitmap::first(5));
        assert_eq!(equal_to_one(&texts, &Bitmap::first(9)), [1, 4, 7]);
        assert_eq!(known(&texts), Bitmap::first(9));
        assert_eq!(texts.read.lock()[0].1.values.len(), 4);
    }

    #[test]
    fn a_copy_reads_the_changed_docid_again_and_nothing_else() {
        let texts = texts_of(30);
        assert_eq!(equal_to_one(&texts, &Bitmap::first(8)), [1, 4, 7]);
        let changed = texts.with(4, &"{}".into(), &Bitmap::first(30));
        assert_eq!(
            changed.read.lock()[0].1.known.docids().collect::<Vec<_>>(),
            [0, 1, 2, 3, 5, 6, 7]
        );
        assert_eq!(equal_to_one(&changed, &Bitmap::first(8)), [1, 7]);
        assert_eq!(equal_to_one(&texts, &Bitmap::first(8)), [1, 4, 7]);
    }

    #[test]
    fn no_more_than_some_paths_are_kept() {
        let texts = texts_of(3);
        for number in 0..2 * KEPT_PATHS {
            texts.at_path(&[number.to_string().into()], &Bitmap::first(3), |_, text| text);
        }
        assert_eq!(texts.read.lock().len(), KEPT_PATHS);
        assert_eq!(*texts.read.lock()[0].0, [KEPT_PATHS.to_string().into()]);
    }
}
