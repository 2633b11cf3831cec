//! All terms ever seen, by number and by n-gram. It only grows.

use std::collections::{HashMap, HashSet};

use parking_lot::RwLock;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::distinct;
use super::fuzzy::{FuzzyIndex, has_digit};
use super::holders;
use super::languages::{TextLanguage, UserLanguages};
use super::ngrams::{Ngram, each_ngram};
use crate::Error;
use crate::system::memory_budget::{PER_WORD, headroom, of_folding};
use crate::text::detection::language_of;
use crate::text::word_parts::each_word_and_part;
use crate::text::words::Word;
use crate::text::{Analyser, Analysis, Language};

/// A text as numbers of terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysed {
    /// The terms in text order.
    pub(super) terms: Vec<u32>,
    /// Each term once.
    pub(super) distinct: Vec<u32>,
    /// The language of the stems, where it was detected.
    pub(super) language: Option<TextLanguage>,
}

impl Analysed {
    pub(super) fn new(terms: Vec<u32>, language: Option<TextLanguage>) -> Self {
        Self { distinct: distinct(&terms), terms, language }
    }
}

/// Terms and their numbers, shared by all snapshots; the lock is never held while memories are
/// scored.
pub(super) struct Vocabulary {
    pub(super) analyser: Analyser,
    known: RwLock<Known>,
}

/// Largest number of written words of a language with cached terms: a full table of 2^15 places, which holds
/// nearly all English words that recur.
const MAX_WRITTEN: usize = (1 << 15) / 8 * 7;

/// Bytes of a new term: its text, its n-grams and its places in lists.
const PER_TERM: usize = 1024;

/// Assumed n-grams of a term, in estimates made before it is read.
const NGRAMS_PER_TERM: usize = 8;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Known {
    #[serde(skip)]
    ids: HashMap<Box<str>, u32>,
    /// The terms of words as written by language, because stemming is slower than a look-up.
    #[serde(skip)]
    written: [HashMap<Box<str>, u32>; Language::COUNT],
    /// The terms without a digit that hold an n-gram, in order of their numbers.
    #[serde(with = "holders")]
    holders: HashMap<Ngram, Vec<u32>>,
    pub(super) fuzzy_index: FuzzyIndex,
}

impl Serialize for Vocabulary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read(|known| known.serialize(serializer))
    }
}

impl<'de> Deserialize<'de> for Vocabulary {
    /// Not yet fit for use; see [`restored`](Self::restored).
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let known = RwLock::new(Known::deserialize(deserializer)?);
        Ok(Self { analyser: Analysis::default().into(), known })
    }
}

impl Vocabulary {
    /// A vocabulary that was read, with all that follows from its terms.
    pub(super) fn restored(self, analyser: Analyser) -> Result<Self, Error> {
        let known = RwLock::new(self.known.into_inner().restored()?);
        Ok(Self { analyser, known })
    }

    pub(super) fn new(analyser: Analyser) -> Self {
        Self { analyser, known: RwLock::default() }
    }

    /// Cut a text into terms and number those that are new, as a memory of a user of these languages.
    pub(super) fn analyse(&self, text: &str, languages: UserLanguages) -> Analysed {
        let (words, language) = self.words(text, languages);
        Analysed::new(self.ids(&words), language)
    }

    /// The words of a text with their language, which is returned if it was to be detected.
    fn words(&self, text: &str, languages: UserLanguages) -> (Words, Option<TextLanguage>) {
        let analysis = match self.analyser {
            Analyser::Fixed(analysis) => return (Words::of(text, analysis), None),
            Analyser::Detecting => Analysis::default(),
        };
        let words = Words::of(text, analysis);
        let detected = language_of(text, words.spaced());
        let analysed = languages.of(detected);
        let words = match analysed {
            Language::English => words,
            Language::Turkish => Words::of(text, Analysis { language: Some(analysed) }),
            others => words.in_language(others),
        };
        (words, Some(TextLanguage { analysed, detected }))
    }

    /// [`analyse`](Self::analyse) with a check of the memory that it needs.
    pub(super) fn try_analyse(
        &self,
        text: &str,
        languages: UserLanguages,
    ) -> Result<Analysed, Error> {
        headroom(of_folding(text).saturating_add(text.len().saturating_mul(PER_WORD / 8)))?;
        let (words, language) = self.words(text, languages);
        headroom(words.ends.len().saturating_mul(PER_WORD))?;
        let new_terms = self.new_terms(&words);
        headroom(
            new_terms.saturating_mul(PER_TERM).saturating_add(self.bytes_of_growth(new_terms)),
        )?;
        Ok(Analysed::new(self.ids(&words), language))
    }

    /// How many words of a text may be new terms.
    fn new_terms(&self, words: &Words) -> usize {
        self.read(|known| {
            let unknown = words.iter().filter(|word| known.find(*word).is_none());
            unknown.map(|word| word.text).collect::<HashSet<_>>().len()
        })
    }

    /// Bytes of the larger tables after so many more terms: twice their size, beside the old ones.
    pub(super) fn bytes_of_growth(&self, new_terms: usize) -> usize {
        let known = self.known.read();
        let grown = |len: usize, more: usize, capacity: usize, entry: usize| {
            let len = len.saturating_add(more);
            if len <= capacity { 0 } else { len.max(capacity).saturating_mul(4 * entry) }
        };
        let (terms, ngrams) =
            (size_of::<(Box<str>, u32)>() + 1, size_of::<(Ngram, Vec<u32>)>() + 1);
        let new_ngrams = new_terms.saturating_mul(NGRAMS_PER_TERM);
        grown(known.ids.len(), new_terms, known.ids.capacity(), terms)
            .saturating_add(grown(
                known.longest_written().len(),
                new_terms.min(MAX_WRITTEN),
                known.longest_written().capacity(),
                terms,
            ))
            .saturating_add(grown(
                known.holders.len(),
                new_ngrams,
                known.holders.capacity(),
                ngrams,
            ))
            .saturating_add(known.fuzzy_index.bytes_of_growth(new_terms))
    }

    /// Call `read` with the current terms.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Known) -> T) -> T {
        read(&self.known.read())
    }

    /// The number of a term, which is numbered if it is new.
    pub(super) fn number(&self, term: &str) -> u32 {
        let mut known = self.known.write();
        known.id(term).unwrap_or_else(|| known.number(term))
    }

    fn ids(&self, words: &Words) -> Vec<u32> {
        let find = |known: &Known| words.iter().map(|word| known.find(word)).collect();
        let found: Vec<Option<u32>> = self.read(find);
        let unknown = words.iter().zip(&found).filter(|(_, id)| id.is_none());
        // Stemming is the longest part, so it comes before the lock.
        let unknown: Vec<_> = unknown.map(|(word, _)| (word, word.token())).collect();
        if unknown.is_empty() {
            return found.into_iter().flatten().collect();
        }
        let mut known = self.known.write();
        let mut learnt = unknown.into_iter().map(|(word, token)| known.learn(word, &token));
        found.into_iter().filter_map(|id| id.or_else(|| learnt.next())).collect()
    }

    /// Estimated bytes: maps hold an eighth of their places free and a byte for each.
    pub(super) fn bytes(&self) -> usize {
        let known = self.known.read();
        let texts = known.ids.keys().chain(known.written.iter().flat_map(HashMap::keys));
        let texts: usize = texts.map(|text| text.len().next_multiple_of(16)).sum();
        let lists: usize = known.holders.values().map(|list| list.capacity() * 4).sum();
        let term = size_of::<(Box<str>, u32)>() + 1;
        let written: usize = known.written.iter().map(HashMap::capacity).sum();
        let ngram = size_of::<(Ngram, Vec<u32>)>() + 1;
        texts
            + lists
            + (known.ids.capacity() + written) * term * 8 / 7
            + known.holders.capacity() * ngram * 8 / 7
            + known.fuzzy_index.bytes()
    }
}

impl Known {
    fn restored(self) -> Result<Self, Error> {
        let texts = self.fuzzy_index.all_texts().unwrap_or_default();
        let ids: HashMap<Box<str>, u32> =
            texts.iter().map(|text| (*text).into()).zip(0..).collect();
        let are_known = self.fuzzy_index.len() == ids.len();
        Error::unless(are_known, "terms that do not fit together")?;
        let held = self.holders.values().flatten();
        let are_held = held.max().is_none_or(|last| (*last as usize) < ids.len());
        Error::unless(are_held, "n-grams of other terms")?;
        Ok(Self { ids, ..self })
    }

    /// Number of terms.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The number of a term, if it was ever seen.
    pub(super) fn id(&self, term: &str) -> Option<u32> {
        self.ids.get(term).copied()
    }

    /// The text of a term.
    pub(super) fn text(&self, term: u32) -> &str {
        self.fuzzy_index.text(term)
    }

    /// The terms without a digit that hold an n-gram.
    pub(super) fn holders(&self, ngram: &Ngram) -> &[u32] {
        self.holders.get(ngram).map_or(&[], Vec::as_slice)
    }

    /// The cached term of a written word.
    fn find(&self, word: Word<'_>) -> Option<u32> {
        let known = word.language.map_or(&self.ids, |language| &self.written[language as usize]);
        known.get(word.text).copied()
    }

    /// The table of written words that has the most capacity.
    fn longest_written(&self) -> &HashMap<Box<str>, u32> {
        let longest = self.written.iter().max_by_key(|table| table.capacity());
        longest.unwrap_or(&self.ids)
    }

    /// The number of a word's term, which is numbered if it is new.
    fn learn(&mut self, word: Word<'_>, term: &str) -> u32 {
        let id = self.id(term).unwrap_or_else(|| self.number(term));
        if let Some(language) = word.language {
            let written = &mut self.written[language as usize];
            if written.len() == MAX_WRITTEN {
                written.clear(); // those that come often are soon back
            }
            written.insert(word.text.into(), id);
        }
        id
    }

    fn number(&mut self, term: &str) -> u32 {
        let id = u32::try_from(self.ids.len()).expect("fewer than 2^32 terms");
        self.ids.insert(term.into(), id);
        if !has_digit(term) {
            each_ngram(term, |ngram: Ngram| self.holders.entry(ngram).or_default().push(id));
        }
        self.fuzzy_index.learn(term);
        id
    }
}

/// Words of one text in one buffer.
#[derive(Default)]
struct Words {
    text: String,
    /// End of each word, and the word with its stem.
    ends: Vec<(usize, Option<Language>)>,
}

impl Words {
    fn of(text: &str, analysis: Analysis) -> Self {
        let mut words = Self::default();
        each_word_and_part(text, analysis, |word| words.push(word));
        words
    }

    /// The words of scripts with spaces.
    fn spaced(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|word| word.language.is_some()).map(|word| word.text)
    }

    /// The same words with the stems of another language.
    fn in_language(mut self, language: Language) -> Self {
        for (_, stem) in self.ends.iter_mut().filter(|(_, stem)| stem.is_some()) {
            *stem = Some(language);
        }
        self
    }

    fn push(&mut self, word: Word<'_>) {
        self.text.push_str(word.text);
        self.ends.push((self.text.len(), word.language));
    }

    fn iter(&self) -> impl Iterator<Item = Word<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        let word =
            |(start, (end, language))| Word { text: &self.text[start..end], language, parts: 0 };
        starts.zip(self.ends.iter().copied()).map(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(from: usize, to: usize) -> String {
        let words: Vec<String> = (from..to).map(|number| format!("word{number}")).collect();
        words.join(" ")
    }

    #[test]
    fn a_word_has_its_term_again_however_many_came_between() {
        let vocabulary = Vocabulary::new(Analysis::default().into());
        let analyse = |text: &str| vocabulary.analyse(text, UserLanguages::default());
        let cats = analyse("Cats, a cat");
        assert_eq!((cats.terms[0], cats.distinct.len()), (cats.terms[2], 2));
        let many = analyse(&numbers(0, 3 * MAX_WRITTEN));
        assert_eq!(many.distinct.len(), 3 * MAX_WRITTEN);
        assert_eq!(analyse(&numbers(0, 3 * MAX_WRITTEN)), many);
        assert_eq!(analyse("Cats, a cat"), cats);
    }

    #[test]
    fn few_words_are_kept_as_they_are_written() {
        let vocabulary = Vocabulary::new(Analysis::default().into());
        let analyse = |text: &str| vocabulary.analyse(text, UserLanguages::default());
        let kept = || {
            vocabulary.read(|known| {
                let written = known.longest_written();
                (written.len(), written.capacity())
            })
        };
        analyse(&numbers(0, MAX_WRITTEN));
        assert_eq!(kept(), (MAX_WRITTEN, MAX_WRITTEN));
        analyse(&numbers(MAX_WRITTEN, 2 * MAX_WRITTEN + 7));
        assert_eq!(kept(), (7, MAX_WRITTEN));
    }

    #[test]
    fn words_without_a_stem_are_kept_once() {
        let plain = Vocabulary::new(Analysis { language: None }.into());
        let terms = |vocabulary: &Vocabulary, text: &str| {
            vocabulary.analyse(text, UserLanguages::default()).terms
        };
        assert_eq!(terms(&plain, "cats cats cat"), [0, 0, 1]);
        let english = Vocabulary::new(Analysis::default().into());
        assert_eq!(terms(&english, "東京都 東京"), [0, 1, 0]);
        let kept = |vocabulary: &Vocabulary| vocabulary.read(|known| known.longest_written().len());
        assert_eq!((kept(&plain), kept(&english)), (0, 0));
    }
}
