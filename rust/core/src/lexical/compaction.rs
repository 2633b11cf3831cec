//! Copies without some of the memories.

use std::sync::Arc;

use super::Lexical;
use super::vocabulary::{Analysed, Vocabulary};

/// Numbers of the terms of kept memories in a new vocabulary, in the order in which these are met.
struct NewTerms<'old> {
    old: &'old Vocabulary,
    new: Arc<Vocabulary>,
    /// By old number.
    numbers: Vec<u32>,
}

/// The number of a term that no memory had so far.
const UNKNOWN: u32 = u32::MAX;

impl NewTerms<'_> {
    fn analysed(&mut self, old: &[u32]) -> Analysed {
        Analysed::new(old.iter().map(|term| self.number(*term)).collect(), None)
    }

    fn number(&mut self, old: u32) -> u32 {
        match self.numbers.get(old as usize) {
            Some(&number) if number != UNKNOWN => number,
            _ => self.learn(old),
        }
    }

    fn learn(&mut self, old: u32) -> u32 {
        let number = self.old.read(|known| self.new.number(known.text(old)));
        let len = self.numbers.len().max(old as usize + 1);
        self.numbers.resize(len, UNKNOWN);
        self.numbers[old as usize] = number;
        number
    }
}

impl Lexical {
    /// The memories of some live docids under new docids without gaps, with a vocabulary of their
    /// terms. `user_of` gives the user of an old docid, `memory` user and text of a new one.
    ///
    /// A text is analysed again only where its user has other languages without the memories that
    /// are left out.
    pub(crate) fn compacted<'text>(
        &self,
        docids: &[u32],
        user_of: impl Fn(u32) -> u32,
        memory: impl Fn(u32) -> (u32, &'text str),
    ) -> Self {
        let mut compacted = Self::new(self.analyser());
        compacted.languages = self.languages.compacted(docids, |docid| memory(docid).0);
        let new = Arc::clone(&compacted.vocabulary);
        let mut terms = NewTerms { old: &self.vocabulary, new, numbers: Vec::new() };
        for (docid, old) in (0..).zip(docids) {
            let (user, text) = memory(docid);
            let detected = self.languages.detected(*old);
            let (before, now) =
                (self.languages.applied(user_of(*old)), compacted.languages.applied(user));
            let analysed = if before.of(detected) == now.of(detected) {
                terms.analysed(self.terms(*old))
            } else {
                compacted.vocabulary.analyse(text, now)
            };
            compacted.push_terms(&analysed, user);
        }
        compacted
    }
}
