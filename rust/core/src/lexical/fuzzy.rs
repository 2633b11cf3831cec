//! Fuzzy search: the known term with the most similar spelling.
//!
//! Terms are compared one by one, and nearly all of them by a signature alone. Lists of the terms
//! that hold each bigram took ten times as long over 60,000 terms, as frequent bigrams have long
//! lists, and could not leave out the terms that the asker's memories do not have.

use std::cmp::Ordering;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::ngrams::each_ngram;
use crate::collections::plain;
use crate::text::accents::without_accents;

/// Fewer characters begin too many words.
const MIN_BEGINNING: usize = 4;

/// Two neighbouring characters of a bounded term.
type Bigram = [char; 2];

/// The bigrams of all terms, without accents, as signatures, and their texts.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct FuzzyIndex {
    #[serde(with = "plain")]
    signatures: Vec<Signature>,
    /// Distinct bigrams of each term.
    #[serde(with = "plain")]
    sizes: Vec<u16>,
    texts: String,
    /// Where each term's text ends; it begins where that of the term before ends.
    #[serde(with = "plain")]
    ends: Vec<u32>,
}

/// A set of bigrams with a bit for each, which several may share.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(transparent)]
struct Signature(u64);

impl Signature {
    fn insert(&mut self, [first, second]: Bigram) {
        let pair = u64::from(first) << 32 | u64::from(second);
        // Fibonacci hashing: the upper bits of a product with 2^64 / golden ratio.
        self.0 |= 1 << (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58);
    }

    fn bits(self) -> u16 {
        self.0.count_ones() as u16
    }
}

/// A known term, and the Dice coefficient of its character bigrams with the query's; halfway from
/// there to 1 if it begins with the query, as a compound does with its first word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alike {
    pub(super) term: u32,
    pub(super) likeness: f32,
}

/// A text without accents, to compare with known terms.
struct FuzzyQuery<'text> {
    text: &'text str,
    bigrams: Vec<Bigram>,
    signature: Signature,
    /// How many bigrams share a bit with others.
    clashing: u16,
}

impl<'text> FuzzyQuery<'text> {
    fn new(text: &'text str) -> Self {
        let (mut bigrams, mut signature) = (Vec::new(), Signature::default());
        each_ngram(text, |bigram: Bigram| {
            bigrams.push(bigram);
            signature.insert(bigram);
        });
        let clashing = bigrams.len() as u16 - signature.bits();
        Self { text, bigrams, signature, clashing }
    }

    fn size(&self) -> u16 {
        self.bigrams.len() as u16
    }

    /// At least as many bigrams as a term with this signature has in common with the text.
    fn max_in_common(&self, signature: Signature) -> u16 {
        Signature(self.signature.0 & signature.0).bits() + self.clashing
    }

    fn in_common(&self, text: &str) -> u16 {
        let mut common = 0;
        each_ngram(text, |bigram: Bigram| common += u16::from(self.bigrams.contains(&bigram)));
        common
    }

    /// At least the likeness to a term with this signature and so many bigrams.
    fn max_likeness(&self, signature: Signature, size: u16) -> f32 {
        let common = self.max_in_common(signature).min(size);
        let may_begin = common + 1 >= self.size();
        self.likeness(common, size, may_begin)
    }

    /// 0 for a text that has no bigram in common.
    #[inline(never)]
    fn likeness_to(&self, text: &str, size: u16) -> f32 {
        let text = without_accents(text);
        let begins = self.size() as usize > MIN_BEGINNING && text.starts_with(self.text);
        self.likeness(self.in_common(&text), size, begins)
    }

    fn likeness(&self, common: u16, size: u16, begins: bool) -> f32 {
        let dice = f32::from(2 * common) / f32::from(self.size() + size);
        if begins { f32::midpoint(dice, 1.0) } else { dice }
    }
}

impl FuzzyIndex {
    /// Take in the term with the next number.
    pub(super) fn learn(&mut self, text: &str) {
        let plain = without_accents(text);
        let query = FuzzyQuery::new(&plain);
        self.signatures.push(query.signature);
        self.sizes.push(query.size());
        self.texts.push_str(text);
        self.ends.push(u32::try_from(self.texts.len()).expect("terms of less than 4 GiB"));
    }

    /// The term, among those that `each_term` visits, that is most like `text`, if it is at least
    /// `min`; ties go to the smaller text. A text with a digit is like no other.
    pub(super) fn nearest(
        &self,
        text: &str,
        min: f32,
        each_term: impl FnOnce(&mut dyn FnMut(u32)),
    ) -> Option<Alike> {
        if has_digit(text) {
            return None;
        }
        let plain = without_accents(text);
        let query = FuzzyQuery::new(&plain);
        let mut best: Option<Alike> = None;
        each_term(&mut |term| {
            let (signature, size) = (self.signatures[term as usize], self.sizes[term as usize]);
            if query.max_likeness(signature, size) >= best.map_or(min, |best| best.likeness) {
                let alike = Alike { term, likeness: query.likeness_to(self.text(term), size) };
                best = self.better(alike, min, best);
            }
        });
        best
    }

    /// A term if it is at least so much alike, and more so than the best before; else that. Not part
    /// of the loop, where few terms come so far.
    #[inline(never)]
    fn better(&self, alike: Alike, min: f32, best: Option<Alike>) -> Option<Alike> {
        let is_better = best.is_none_or(|best| self.order(alike, best).is_gt());
        let is_alike = alike.likeness > 0.0 && alike.likeness >= min;
        let is_best = is_alike && is_better && !has_digit(self.text(alike.term));
        if is_best { Some(alike) } else { best }
    }

    fn order(&self, one: Alike, other: Alike) -> Ordering {
        let by_text = || self.text(other.term).cmp(self.text(one.term));
        one.likeness.total_cmp(&other.likeness).then_with(by_text)
    }

    /// Number of terms.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The texts of all terms; `None` if what is known of them does not fit together.
    pub(super) fn all_texts(&self) -> Option<Vec<&str>> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let spans = starts.zip(&self.ends);
        let texts: Option<Vec<&str>> =
            spans.map(|(start, end)| self.texts.get(*start as usize..*end as usize)).collect();
        let texts =
            texts.filter(|texts| [self.sizes.len(), self.signatures.len()] == [texts.len(); 2])?;
        let is_size = |(text, size): (&&str, &u16)| usize::from(*size) <= text.len() + 1;
        texts.iter().zip(&self.sizes).all(is_size).then_some(texts)
    }

    pub(super) fn text(&self, term: u32) -> &str {
        let term = term as usize;
        let start = if term == 0 { 0 } else { self.ends[term - 1] };
        &self.texts[start as usize..self.ends[term] as usize]
    }

    /// Bytes of the larger vectors after so many more terms.
    pub(super) fn bytes_of_growth(&self, new_terms: usize) -> usize {
        let is_full = self.sizes.len().saturating_add(new_terms) > self.sizes.capacity();
        let text = 2 * self.texts.capacity();
        let lists = self.sizes.len().saturating_add(new_terms).saturating_mul(32);
        if is_full { text.saturating_add(lists) } else { text }
    }

    pub(super) fn bytes(&self) -> usize {
        let a_term = size_of::<Signature>() + size_of::<u16>() + size_of::<u32>();
        self.sizes.capacity() * a_term + self.texts.capacity()
    }
}

/// Whether a text is like no other one, however few characters differ: the next number is no
/// misspelling.
pub(super) fn has_digit(text: &str) -> bool {
    text.contains(char::is_numeric)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn fuzzy_index(terms: &[&str]) -> FuzzyIndex {
        let mut fuzzy_index = FuzzyIndex::default();
        for term in terms {
            fuzzy_index.learn(term);
        }
        fuzzy_index
    }

    fn nearest<'a>(terms: &[&'a str], text: &str) -> Option<&'a str> {
        fuzzy_index(terms)
            .nearest(text, 0.5, |visit| (0..terms.len() as u32).for_each(visit))
            .map(|alike| terms[alike.term as usize])
    }

    #[test]
    fn a_word_with_a_slip_is_near_to_the_right_one() {
        let terms = ["harbour", "harvest", "labour", "bicycle", "violin"];
        assert_eq!(nearest(&terms, "harbuor"), Some("harbour"));
        assert_eq!(nearest(&terms, "bycicle"), Some("bicycle"));
        assert_eq!(nearest(&terms, "vioolin"), Some("violin"));
        assert_eq!(nearest(&terms, "zeppelin"), None);
        assert_eq!(nearest(&[], "violin"), None);
    }

    #[test]
    fn ties_go_to_the_smaller_text_whatever_came_first() {
        assert_eq!(nearest(&["tent", "tend", "tens"], "tenk"), Some("tend"));
        assert_eq!(nearest(&["tens", "tend", "tent"], "tenk"), Some("tend"));
    }

    #[test]
    fn a_compound_is_nearer_than_another_word_of_the_same_letters() {
        let terms = ["teuer", "steuererklarung", "hauser", "hausturschlussel"];
        assert_eq!(nearest(&terms, "steuer"), Some("steuererklarung"));
        assert_eq!(nearest(&terms, "haustür"), Some("hausturschlussel"));
    }

    #[test]
    fn accents_make_no_difference_and_digits_all() {
        assert_eq!(nearest(&["łódź", "lotse"], "lodz"), Some("łódź"));
        assert_eq!(nearest(&["10023", "a1b2c3d"], "10024"), None);
        assert_eq!(nearest(&["hydra7"], "hydra"), None);
    }

    #[test]
    fn terms_that_are_not_meant_are_passed_over() {
        let fuzzy_index = fuzzy_index(&["harbour", "harbours"]);
        assert_eq!(
            fuzzy_index.nearest("harbour", 0.5, |visit| visit(1)).expect("is alike").term,
            1
        );
    }

    fn bigrams(term: &str) -> HashSet<Vec<char>> {
        let bounded: Vec<char> = format!("_{}_", without_accents(term)).chars().collect();
        bounded.windows(2).map(<[char]>::to_vec).collect()
    }

    fn any_term() -> impl Strategy<Value = String> {
        prop_oneof![4 => "[a-d]{1,8}", 1 => "[aä猫é]{1,5}", 1 => "a{60,70}"]
    }

    proptest! {
            #[test]
            fn the_nearest_is_the_one_that_comparing_with_every_term_finds(
                terms in prop::collection::hash_set(any_term(), 0..60), text in any_term(),
                min in prop::sample::select(vec![0.1_f32, 0.4, 0.5, 0.75, 1.0]), step in 1_u32..4,
            ) {
                let mut terms: Vec<String> = terms.into_iter().collect();
                let mut fuzzy_index = FuzzyIndex::default();
                for term in &terms {
     fuzzy_index.learn(term);
    }
                let found = fuzzy_index.nearest(&text, min, |visit| {
                    (0..terms.len() as u32).step_by(step as usize).for_each(visit);
                });
                let found = found.map(|alike| (terms[alike.term as usize].clone(), alike.likeness));
                terms = terms.into_iter().step_by(step as usize).collect();
                terms.sort();
                let mut wanted: Option<(String, f32)> = None;
                for term in terms {
                    let (one, other) = (bigrams(&text), bigrams(&term));
                    let common = one.intersection(&other).count();
                    let dice = (2 * common) as f32 / (one.len() + other.len()) as f32;
                    let begins = one.len() > 4 && without_accents(&term).starts_with(&*without_accents(&text));
                    let dice = if begins { f32::midpoint(dice, 1.0) } else { dice };
                    if dice >= min && wanted.as_ref().is_none_or(|(_, best)| dice > *best) {
                        wanted = Some((term, dice));
                    }
                }
                prop_assert_eq!(found, wanted);
            }
        }
}
