//! The stems of a word in all languages, kept for words that recur.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

use super::Language;
use super::language::Languages;
use super::words::Word;

/// The distinct stems of a word, each with its languages.
pub(super) type Stems = Arc<[(Box<str>, Languages)]>;

/// Words that are kept: about 200 bytes each. Stemming a word in all languages takes as long as
/// looking up a hundred.
const MAX_KEPT: usize = 4096;

static KEPT: LazyLock<RwLock<HashMap<Box<str>, Stems>>> = LazyLock::new(RwLock::default);

impl Word<'_> {
    /// The tokens in other languages that differ from the first and from one another.
    pub(crate) fn other_tokens(self, first: &str, languages: &[Language]) -> Vec<String> {
        if languages.is_empty() || self.language.is_none() {
            return Vec::new();
        }
        let stems = stems(self.text);
        let wanted = stems.iter().filter(|(_, of)| languages.iter().any(|one| of.has(*one)));
        wanted.map(|(stem, _)| &**stem).filter(|stem| *stem != first).map(str::to_owned).collect()
    }
}

/// The stems of a folded word; whether they were kept makes no difference to them.
pub(super) fn stems(word: &str) -> Stems {
    if let Some(kept) = KEPT.read().get(word) {
        return Arc::clone(kept);
    }
    let stems = stems_of(word);
    let mut kept = KEPT.write();
    if kept.len() >= MAX_KEPT {
        kept.clear();
    }
    kept.insert(word.into(), Arc::clone(&stems));
    stems
}

fn stems_of(word: &str) -> Stems {
    let mut stems: Vec<(Box<str>, Languages)> = Vec::new();
    for language in Language::all() {
        let stem = Word { text: word, language: Some(language), parts: 0 }.token();
        match stems.iter_mut().find(|(known, _)| **known == *stem) {
            Some((_, languages)) => languages.add(language),
            None => stems.push((stem.into(), Languages::of(language))),
        }
    }
    stems.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_a_stem_in_each_language() {
        for _ in 0..2 {
            let found = stems("häuser");
            for language in Language::all() {
                let (stem, _) = found.iter().find(|(_, of)| of.has(language)).expect("a stem");
                let word = Word { text: "häuser", language: Some(language), parts: 0 };
                assert_eq!(**stem, *word.token());
            }
            assert!(found.iter().any(|(stem, of)| &**stem == "haus" && of.has(Language::German)));
        }
    }
}
