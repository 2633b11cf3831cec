//! Which known term is spelled most like an unknown one.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::grams::each_gram;

/// Two neighbouring characters of a bounded term.
type Bigram = [char; 2];

/// The terms by the bigrams they hold, and their texts.
#[derive(Default)]
pub(super) struct Spelling {
    /// The terms that hold a bigram, in order of their numbers.
    holders: HashMap<Bigram, Vec<u32>>,
    /// Distinct bigrams of each term.
    sizes: Vec<u16>,
    texts: String,
    /// Where each term's text ends; it begins where that of the term before ends.
    ends: Vec<u32>,
}

/// A known term, and the Dice coefficient of its bigrams and another's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alike {
    pub(super) term: u32,
    pub(super) dice: f32,
}

impl Spelling {
    /// Take in the term with the next number.
    pub(super) fn learn(&mut self, text: &str) {
        let term = u32::try_from(self.sizes.len()).expect("fewer than 2^32 terms");
        let mut size = 0;
        each_gram(text, |bigram: Bigram| {
            self.holders.entry(bigram).or_default().push(term);
            size += 1;
        });
        self.sizes.push(size);
        self.texts.push_str(text);
        self.ends.push(u32::try_from(self.texts.len()).expect("terms of less than 4 GiB"));
    }

    /// The term, among those that `is_meant`, whose bigrams have the greatest Dice coefficient with
    /// those of `text`, if it is `least` or more; ties go to the smaller text.
    pub(super) fn nearest(
        &self,
        text: &str,
        least: f32,
        is_meant: impl Fn(u32) -> bool,
    ) -> Option<Alike> {
        let (common, size) = self.bigrams_in_common(text);
        let mut best: Option<Alike> = None;
        for (term, (&common, &other)) in (0..).zip(common.iter().zip(&self.sizes)) {
            if common == 0 {
                continue;
            }
            let alike = Alike { term, dice: f32::from(2 * common) / f32::from(size + other) };
            let is_better = best.is_none_or(|best| self.order(alike, best).is_gt());
            if alike.dice >= least && is_better && is_meant(term) {
                best = Some(alike);
            }
        }
        best
    }

    /// How many bigrams of `text` each term holds, and how many there are.
    fn bigrams_in_common(&self, text: &str) -> (Vec<u16>, u16) {
        let mut common = vec![0; self.sizes.len()];
        let mut size = 0;
        each_gram(text, |bigram: Bigram| {
            size += 1;
            for term in self.holders.get(&bigram).into_iter().flatten() {
                common[*term as usize] += 1;
            }
        });
        (common, size)
    }

    fn order(&self, one: Alike, other: Alike) -> Ordering {
        let by_text = || self.text(other.term).cmp(self.text(one.term));
        one.dice.total_cmp(&other.dice).then_with(by_text)
    }

    fn text(&self, term: u32) -> &str {
        let term = term as usize;
        let start = if term == 0 { 0 } else { self.ends[term - 1] };
        &self.texts[start as usize..self.ends[term] as usize]
    }

    /// Bytes that vectors take anew where so many more terms make them grow.
    pub(super) fn bytes_of_growth(&self, new_terms: usize) -> usize {
        let is_full = self.sizes.len().saturating_add(new_terms) > self.sizes.capacity();
        let text = 2 * self.texts.capacity();
        let lists = self.sizes.len().saturating_add(new_terms).saturating_mul(16);
        if is_full { text.saturating_add(lists) } else { text }
    }

    /// Estimated bytes: maps hold an eighth of their places free and a byte for each.
    pub(super) fn bytes(&self) -> usize {
        let lists: usize = self.holders.values().map(|list| list.capacity() * 4).sum();
        let holder = size_of::<(Bigram, Vec<u32>)>() + 1;
        lists
            + self.holders.capacity() * holder * 8 / 7
            + self.sizes.capacity() * 2
            + self.texts.capacity()
            + self.ends.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn spelling(terms: &[&str]) -> Spelling {
        let mut spelling = Spelling::default();
        for term in terms {
            spelling.learn(term);
        }
        spelling
    }

    fn nearest<'a>(terms: &[&'a str], text: &str) -> Option<&'a str> {
        spelling(terms).nearest(text, 0.5, |_| true).map(|alike| terms[alike.term as usize])
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
    fn terms_that_are_not_meant_are_passed_over() {
        let spelling = spelling(&["harbour", "harbours"]);
        assert_eq!(spelling.nearest("harbour", 0.5, |term| term > 0).expect("is alike").term, 1);
    }

    fn bigrams(term: &str) -> HashSet<Vec<char>> {
        let bounded: Vec<char> = format!("_{term}_").chars().collect();
        bounded.windows(2).map(<[char]>::to_vec).collect()
    }

    fn any_term() -> impl Strategy<Value = String> {
        prop_oneof![4 => "[a-d]{1,8}", 1 => "[aä猫é]{1,5}", 1 => "a{60,70}"]
    }

    proptest! {
            #[test]
            fn the_nearest_is_the_one_that_comparing_with_every_term_finds(
                terms in prop::collection::hash_set(any_term(), 0..60), text in any_term(),
                least in prop::sample::select(vec![0.1_f32, 0.4, 0.5, 0.75, 1.0]), step in 1_u32..4,
            ) {
                let mut terms: Vec<String> = terms.into_iter().collect();
                let mut spelling = Spelling::default();
                for term in &terms {
     spelling.learn(term);
    }
                let found = spelling.nearest(&text, least, |term| term % step == 0);
                let found = found.map(|alike| (terms[alike.term as usize].clone(), alike.dice));
                terms = terms.into_iter().step_by(step as usize).collect();
                terms.sort();
                let mut wanted: Option<(String, f32)> = None;
                for term in terms {
                    let (one, other) = (bigrams(&text), bigrams(&term));
                    let common = one.intersection(&other).count();
                    let dice = (2 * common) as f32 / (one.len() + other.len()) as f32;
                    if dice >= least && wanted.as_ref().is_none_or(|(_, best)| dice > *best) {
                        wanted = Some((term, dice));
                    }
                }
                prop_assert_eq!(found, wanted);
            }
        }
}
