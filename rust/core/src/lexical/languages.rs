//! The languages of memories: detected, or else that of most memories of their user.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::statistics::Collection;
use crate::collections::cow_vec::BlockVec;
use crate::text::Language;
use crate::text::language::Languages;

/// The language that a text is analysed in, and the one that was detected in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLanguage {
    pub(super) analysed: Language,
    pub(super) detected: Option<Language>,
}

/// Languages of a user, at most.
const MAX_LANGUAGES: usize = 4;

/// One memory in so many has to be in a language for it to be one of the user's: in English dialogue
/// one turn in 1,700 is taken for Catalan, German or Italian.
const MIN_SHARE: u64 = 64;

/// Numbers of memories by language; few languages have any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Counts(Vec<(Language, u64)>);

impl Counts {
    fn add(&mut self, language: Language, count: u64) {
        if count == 0 {
            return;
        }
        match self.0.iter_mut().find(|(known, _)| *known == language) {
            Some((_, known)) => *known += count,
            None => self.0.push((language, count)),
        }
    }

    fn remove(&mut self, language: Language, count: u64) {
        for (_, known) in self.0.iter_mut().filter(|(known, _)| *known == language) {
            *known -= count;
        }
        self.0.retain(|(_, count)| *count > 0);
    }

    /// The entry after `last` in the order of [`by_count`](Self::by_count), or the first one; of
    /// those that at least one of `MIN_SHARE` in `documents` memories is in. Copies nothing.
    fn next_by_count(
        &self,
        last: Option<(Language, u64)>,
        documents: u64,
    ) -> Option<(Language, u64)> {
        let is_frequent = |(_, count): &(Language, u64)| count * MIN_SHARE >= documents;
        let is_next = |entry: &(Language, u64)| last.is_none_or(|last| rank(entry) > rank(&last));
        let entries = self.0.iter().copied();
        entries.filter(is_frequent).filter(is_next).min_by_key(rank)
    }

    /// The languages of most memories first; ties go to English, then to the first by name.
    fn by_count(mut self) -> Vec<Language> {
        self.0.sort_unstable_by_key(rank);
        self.0.into_iter().map(|(language, _)| language).collect()
    }
}

fn rank(&(language, count): &(Language, u64)) -> (u64, bool, Language) {
    (u64::MAX - count, language != Language::English, language)
}

/// The languages that a user's memories are analysed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserLanguages {
    /// The language of most memories, and of those without one of their own.
    majority: Language,
    all: Languages,
}

impl Default for UserLanguages {
    /// English.
    fn default() -> Self {
        Self { majority: Language::English, all: Languages::of(Language::English) }
    }
}

impl UserLanguages {
    /// The language that a memory is analysed in which is in this language, or in none for sure.
    pub(super) fn of(self, detected: Option<Language>) -> Language {
        detected.filter(|language| self.all.has(*language)).unwrap_or(self.majority)
    }
}

/// The languages detected in a user's memories.
#[derive(Debug, Clone, Default)]
struct OfUser {
    detected: Counts,
    undetected: u64,
    /// Those that the memories are analysed in.
    applied: UserLanguages,
}

impl OfUser {
    fn is_empty(&self) -> bool {
        self.undetected == 0 && self.detected.0.is_empty()
    }

    /// Count one more memory in a language, or in none for sure.
    fn count(&mut self, detected: Option<Language>) {
        match detected {
            Some(language) => self.detected.add(language, 1),
            None => self.undetected += 1,
        }
    }

    /// The languages that the memories should be analysed in.
    ///
    /// The number of memories is rounded down to a power of two, so that a language does not come
    /// and go with every other memory.
    fn wanted(&self) -> UserLanguages {
        let documents =
            self.detected.0.iter().map(|(_, count)| count).sum::<u64>() + self.undetected;
        let rounded = 1_u64 << documents.max(1).ilog2();
        let Some(most) = self.detected.next_by_count(None, rounded) else {
            return UserLanguages::default();
        };
        let next = |last: &(Language, u64)| self.detected.next_by_count(Some(*last), rounded);
        let frequent = std::iter::successors(Some(most), next).take(MAX_LANGUAGES);
        let mut all = Languages::default();
        frequent.for_each(|(language, _)| all.add(language));
        UserLanguages { majority: most.0, all }
    }

    /// Numbers of memories by the language that they are analysed in.
    fn analysed(&self) -> Counts {
        let mut counts = Counts::default();
        for (language, count) in &self.detected.0 {
            counts.add(self.applied.of(Some(*language)), *count);
        }
        counts.add(self.applied.majority, self.undetected);
        counts
    }
}

/// Mark of a docid whose language is not detected; others hold the number of their language.
const UNDETECTED: u8 = u8::MAX;
const VACANT: u8 = u8::MAX - 1;

/// A user whose memories are to be analysed in other languages than they were.
pub(super) struct Renewed {
    pub(super) user: u32,
    before: UserLanguages,
    after: UserLanguages,
}

impl Renewed {
    /// The language that a memory is to be analysed in from now on, if it is another.
    pub(super) fn changed(&self, detected: Option<Language>) -> Option<Language> {
        let (before, after) = (self.before.of(detected), self.after.of(detected));
        (before != after).then_some(after)
    }
}

/// Languages by docid and by user; empty where all texts are analysed alike. Cheap to copy.
#[derive(Clone, Default)]
pub(super) struct MemoryLanguages {
    /// The codes of the languages.
    pub(super) of_docid: BlockVec<u8>,
    users: BlockVec<Option<Arc<OfUser>>>,
    /// Of all users, by the languages that memories are analysed in.
    all: Counts,
    /// Users whose memories are to be analysed in other languages.
    outdated: BTreeSet<u32>,
}

impl MemoryLanguages {
    /// The languages of memories with these codes, by docid, as if all of them were settled.
    pub(super) fn of(codes: &[u8], user_of: impl Fn(u32) -> u32) -> Self {
        let mut users: Vec<Option<Arc<OfUser>>> = Vec::new();
        for (docid, code) in (0..).zip(codes).filter(|(_, code)| **code != VACANT) {
            let user = user_of(docid) as usize;
            users.resize(users.len().max(user + 1), None);
            Arc::make_mut(users[user].get_or_insert_default()).count(language_of(*code));
        }
        let mut all = Counts::default();
        for of_user in users.iter_mut().flatten().map(Arc::make_mut) {
            of_user.applied = of_user.wanted();
            of_user.analysed().0.iter().for_each(|(language, count)| all.add(*language, *count));
        }
        let of_docid = BlockVec::of(codes);
        Self { of_docid, users: BlockVec::of(&users), all, outdated: BTreeSet::new() }
    }

    /// The languages of some docids, numbered again; `user_of` has the users of the new ones.
    pub(super) fn compacted(&self, docids: &[u32], user_of: impl Fn(u32) -> u32) -> Self {
        let codes = docids.iter().filter_map(|docid| self.of_docid.get(*docid as usize));
        Self::of(&codes.copied().collect::<Vec<u8>>(), user_of)
    }

    /// Append the next docid's language.
    pub(super) fn push(&mut self, language: Option<TextLanguage>, user: u32) {
        let Some(TextLanguage { analysed, detected }) = language else { return };
        self.of_docid.push(detected.map_or(UNDETECTED, |language| language as u8));
        self.change(user, |of_user| of_user.count(detected));
        self.all.add(analysed, 1);
    }

    /// Append a docid without a memory.
    pub(super) fn push_vacant(&mut self) {
        if self.of_docid.len() > 0 {
            self.of_docid.push(VACANT);
        }
    }

    /// Take out the language of a docid.
    pub(super) fn remove(&mut self, docid: u32, user: u32) {
        let Some(code) = self.of_docid.get_mut(docid as usize) else { return };
        let detected = language_of(std::mem::replace(code, VACANT));
        let analysed = self.applied(user).of(detected);
        self.change(user, |of_user| match detected {
            Some(language) => of_user.detected.remove(language, 1),
            None => of_user.undetected -= 1,
        });
        self.all.remove(analysed, 1);
    }

    /// Change the counts of a user, who is marked if that calls for other languages.
    fn change(&mut self, user: u32, change: impl FnOnce(&mut OfUser)) {
        while self.users.len() <= user as usize {
            self.users.push(None);
        }
        let place = self.users.get_mut(user as usize).expect("a place was just made sure of");
        let of_user = Arc::make_mut(place.get_or_insert_default());
        change(of_user);
        if of_user.is_empty() {
            *place = None;
            self.outdated.remove(&user);
        } else if of_user.wanted() == of_user.applied {
            self.outdated.remove(&user);
        } else {
            self.outdated.insert(user);
        }
    }

    /// The languages that a user's memories are analysed in.
    pub(super) fn applied(&self, user: u32) -> UserLanguages {
        self.user(user).map_or_else(UserLanguages::default, |of_user| of_user.applied)
    }

    /// Return the users whose memories are to be analysed in other languages, which count from now
    /// on; in ascending order.
    pub(super) fn renew(&mut self) -> Vec<Renewed> {
        let mut renewed = Vec::new();
        for user in std::mem::take(&mut self.outdated) {
            let Some(place) = self.users.get_mut(user as usize) else { continue };
            let Some(of_user) = place.as_mut().map(Arc::make_mut) else { continue };
            let (before, after, old) = (of_user.applied, of_user.wanted(), of_user.analysed());
            of_user.applied = after;
            let new = of_user.analysed();
            old.0.into_iter().for_each(|(language, count)| self.all.remove(language, count));
            new.0.into_iter().for_each(|(language, count)| self.all.add(language, count));
            renewed.push(Renewed { user, before, after });
        }
        renewed
    }

    /// The language detected in a docid's memory, if it is sure.
    pub(super) fn detected(&self, docid: u32) -> Option<Language> {
        language_of(*self.of_docid.get(docid as usize)?)
    }

    /// The languages that a collection's memories are analysed in, the most frequent first; English
    /// without any memory.
    pub(super) fn present(&self, collection: Collection) -> Vec<Language> {
        let present = self.counts(collection).by_count();
        if present.is_empty() { vec![Language::English] } else { present }
    }

    fn counts(&self, collection: Collection) -> Counts {
        match collection {
            Collection::All => self.all.clone(),
            Collection::User(user) => self.user(user).map(OfUser::analysed).unwrap_or_default(),
        }
    }

    fn user(&self, user: u32) -> Option<&OfUser> {
        self.users.get(user as usize)?.as_deref()
    }

    pub(super) fn bytes(&self) -> usize {
        let users = (0..self.users.len() as u32).filter_map(|user| self.user(user));
        let bytes = |one: &OfUser| {
            size_of::<OfUser>() + 16 + one.detected.0.capacity() * size_of::<(Language, u64)>()
        };
        self.of_docid.bytes() + self.users.bytes() + users.map(bytes).sum::<usize>()
    }
}

fn language_of(code: u8) -> Option<Language> {
    Language::all().nth(usize::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GERMAN: Option<Language> = Some(Language::German);
    const ENGLISH: Option<Language> = Some(Language::English);

    fn push(languages: &mut MemoryLanguages, detected: Option<Language>, user: u32) {
        let analysed = languages.applied(user).of(detected);
        languages.push(Some(TextLanguage { analysed, detected }), user);
    }

    /// The languages that memories without one are analysed in from now on.
    fn renewed(languages: &mut MemoryLanguages) -> Vec<(u32, Option<Language>)> {
        languages.renew().iter().map(|renewed| (renewed.user, renewed.changed(None))).collect()
    }

    #[test]
    fn the_majority_is_that_of_the_detected_and_ties_go_to_english() {
        let mut languages = MemoryLanguages::default();
        for (language, wanted) in [
            (None, vec![]),
            (GERMAN, vec![(7, GERMAN)]),
            (None, vec![]),
            (ENGLISH, vec![(7, ENGLISH)]),
            (ENGLISH, vec![]),
        ] {
            push(&mut languages, language, 7);
            assert_eq!(renewed(&mut languages), wanted);
        }
        assert_eq!(languages.present(Collection::User(7)), [Language::English, Language::German]);
        languages.remove(3, 7);
        languages.remove(4, 7);
        assert_eq!(renewed(&mut languages), [(7, GERMAN)]);
        assert_eq!(languages.present(Collection::User(7)), [Language::German]);
        assert_eq!(languages.present(Collection::All), [Language::German]);
    }

    #[test]
    fn a_rare_language_is_none_of_the_users() {
        let mut languages = MemoryLanguages::default();
        (0..300).for_each(|_| push(&mut languages, ENGLISH, 1));
        (0..3).for_each(|_| push(&mut languages, GERMAN, 1));
        assert!(languages.renew().is_empty());
        assert_eq!(languages.present(Collection::User(1)), [Language::English]);
        push(&mut languages, GERMAN, 1);
        let changed: Vec<_> = languages.renew().iter().map(|one| one.changed(GERMAN)).collect();
        assert_eq!(changed, [GERMAN]);
        assert_eq!(languages.present(Collection::All), [Language::English, Language::German]);
        languages.remove(302, 1);
        let changed: Vec<_> = languages.renew().iter().map(|one| one.changed(GERMAN)).collect();
        assert_eq!(changed, [ENGLISH]);
        assert_eq!(languages.present(Collection::All), [Language::English]);
    }

    #[test]
    fn a_user_has_no_influence_on_another() {
        let mut languages = MemoryLanguages::default();
        (0..100).for_each(|_| push(&mut languages, GERMAN, 1));
        push(&mut languages, None, 2);
        assert_eq!(renewed(&mut languages), [(1, GERMAN)]);
        assert_eq!(languages.applied(2), UserLanguages::default());
        assert_eq!(languages.present(Collection::User(2)), [Language::English]);
        assert_eq!(languages.present(Collection::All), [Language::German, Language::English]);
        assert_eq!(languages.present(Collection::User(9)), [Language::English]);
    }

    #[test]
    fn a_user_without_memories_takes_no_memory() {
        let mut languages = MemoryLanguages::default();
        push(&mut languages, GERMAN, 3);
        languages.remove(0, 3);
        assert!(languages.user(3).is_none() && languages.renew().is_empty());
        assert_eq!(languages.all, Counts::default());
    }
}
