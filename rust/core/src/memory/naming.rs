//! The speakers that a query names, by their labels or as they are otherwise called.
//!
//! A speaker is named by the whole name, in other case too if that is no ordinary word; by the first
//! name, if no other speaker's name begins so; by a name that others address the speaker by; and by
//! a near spelling of the first word. The candidates of a call alone decide which of these hold.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::speakers::{NOBODY, Turns};
use super::state::MemoryState;
use crate::Error;
use crate::columns::{Columns, Users};
use crate::deadline::{Deadline, MANY_ROWS};
use crate::lexical::Collection;
use crate::text::mentions::Mentions;
use crate::text::names::{self, Mention};
use crate::text::ordinary_names::{ORDINARY, TITLES};
use crate::text::spelling::Spelling;

/// Smallest number of turns that address somebody by an alias: fewer may be a slip.
const MIN_ADDRESSES: usize = 3;

/// Smallest number of quarters of these turns that address one and the same speaker: a turn may also
/// greet somebody who is not next, and "Love" or "everybody" is a name for many.
const MIN_QUARTERS: usize = 3;

/// Largest distance, in turns, of the addressed speaker's turn: people send several messages in a
/// row.
const REACH: usize = 4;

/// The speakers that a text names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct NamedSpeakers {
    /// In the order of the text, each with the largest share of turns of the speakers it may name.
    mentions: Vec<(Mention, f64)>,
    /// In ascending order.
    pub(crate) codes: Vec<u32>,
    /// Their share of all turns.
    pub(crate) share: f64,
}

impl NamedSpeakers {
    /// The text without the names of speakers with more than a share of all turns, unless nothing
    /// would be left of it.
    pub(crate) fn without(&self, text: &str, max_share: f64) -> String {
        let frequent = self.mentions.iter().filter(|(_, share)| *share > max_share);
        names::without(text, frequent.map(|(mention, _)| mention))
    }

    /// The text with "I" and "my" in place of names.
    pub(crate) fn in_first_person(&self, text: &str) -> String {
        names::in_first_person(text, self.mentions.iter().map(|(mention, _)| mention))
    }
}

/// A word that may name speakers, wherever a text has it.
struct Spelled {
    /// In lower case.
    key: String,
    is_capital: bool,
    /// Names that begin with it.
    beginning: Vec<u32>,
    /// Names that begin nearly so; none if it is a word of the memories.
    near: Vec<u32>,
    /// The code of the name in addresses; 0 is none.
    address: u32,
    is_ordinary: bool,
}

impl Spelled {
    fn may_name(&self) -> bool {
        !self.beginning.is_empty() || !self.near.is_empty() || self.address != NOBODY
    }
}

/// A place of such a word in a text.
struct Word<'a> {
    place: Range<usize>,
    text: &'a str,
    /// The position of the word among the text's different ones.
    spelled: usize,
    /// Whether a determiner stands before it.
    is_determined: bool,
}

/// A text with the words that may name speakers.
pub(crate) struct PossibleNames<'a> {
    memories: &'a MemoryState,
    collection: Collection,
    text: &'a str,
    is_lower: bool,
    spelled: Vec<Spelled>,
    words: Vec<Word<'a>>,
}

/// The first name of only one speaker, beside which there is another.
struct FirstName {
    code: u32,
    /// In its own case.
    text: String,
}

impl MemoryState {
    /// The text with its words that may name speakers of some users; `None` if no word does.
    pub(crate) fn possible_names<'a>(
        &'a self,
        text: &'a str,
        users: Users<'_>,
    ) -> Option<PossibleNames<'a>> {
        if !self.speakers.any() {
            return None;
        }
        let all = names::words(text);
        let mut seen: HashMap<(String, bool), Option<usize>> = HashMap::new();
        let (mut spelled, mut words) = (Vec::new(), Vec::new());
        for (at, (place, word)) in all.iter().enumerate() {
            let known = seen.entry((names::key(word), word.starts_with(char::is_uppercase)));
            let known = known.or_insert_with_key(|(key, is_capital)| {
                let one = self.spelled(word, key, *is_capital, users)?;
                spelled.push(one);
                Some(spelled.len() - 1)
            });
            if let Some(spelled) = *known {
                let is_determined = names::is_determined(&all, at);
                words.push(Word { place: place.clone(), text: word, spelled, is_determined });
            }
        }
        let is_lower = names::is_all_lower(text);
        let collection = self.collection(users);
        let possible = PossibleNames { memories: self, collection, text, is_lower, spelled, words };
        (!possible.words.is_empty()).then_some(possible)
    }

    /// A word of a text, if it may name a speaker. Most words do not, so the tables come first.
    fn spelled(
        &self,
        word: &str,
        key: &str,
        is_capital: bool,
        users: Users<'_>,
    ) -> Option<Spelled> {
        let (beginning, address) = {
            let known = self.speakers.known.read();
            (known.beginning_with(key).to_vec(), known.address(key))
        };
        let near = if is_capital { self.near(word, key, users) } else { Vec::new() };
        if beginning.is_empty() && near.is_empty() && address == NOBODY {
            return None;
        }
        let collection = self.collection(users);
        let is_ordinary = ORDINARY.has(key) || self.lexical.is_stop_word(word, collection);
        let (near, address) = if is_ordinary { (Vec::new(), NOBODY) } else { (near, address) };
        let spelled =
            Spelled { key: key.to_owned(), is_capital, beginning, near, address, is_ordinary };
        spelled.may_name().then_some(spelled)
    }

    /// Names that begin nearly as a word that no memory of the users has.
    fn near(&self, word: &str, key: &str, users: Users<'_>) -> Vec<u32> {
        let Some(spelling) = Spelling::new(key) else { return Vec::new() };
        let near = self.speakers.known.read().near(&spelling);
        if near.is_empty() || self.lexical.has_word(word, self.collection(users)) {
            return Vec::new();
        }
        near
    }
}

/// Places in a text where speakers are named, in order, each with the number of its group.
type Found = Vec<(Mention, usize)>;

impl PossibleNames<'_> {
    /// The speakers among candidates, in ascending order, that the text names.
    pub(crate) fn among(
        &self,
        docids: &[u32],
        deadline: &Deadline,
    ) -> Result<NamedSpeakers, Error> {
        let codes = self.spelled.iter().flat_map(|one| one.beginning.iter().chain(&one.near));
        let codes = ascending(codes.copied().collect());
        let mut turns = self.memories.speakers.turns(&codes, docids, deadline)?;
        let (mut found, mut groups) = self.whole_names(&turns);
        let first_names: Vec<_> =
            self.spelled.iter().map(|spelled| self.first_name(spelled, &turns)).collect();
        let rest: Vec<&Word<'_>> =
            self.words.iter().filter(|word| !is_inside(&found, word.place.start)).collect();
        let by_first_name = |word: &Word<'_>| {
            let name = first_names[word.spelled].as_ref();
            name.filter(|name| self.is_meant(word, name)).map(|name| name.code)
        };
        let others = rest.iter().filter(|word| by_first_name(word).is_none());
        let aliases = self.aliases(others.map(|word| word.spelled), docids, deadline)?;
        let codes = ascending(aliases.values().copied().collect());
        turns.of_speaker.extend(self.memories.speakers.turns(&codes, docids, deadline)?.of_speaker);
        for word in rest {
            let spelled = &self.spelled[word.spelled];
            let alias = || aliases.get(&word.spelled).copied();
            let alias = || alias().filter(|code| turns.of_speaker.contains_key(code));
            let code = by_first_name(word).or_else(alias);
            let Some(code) = code.or_else(|| by_near_spelling(spelled, &turns)) else { continue };
            let mention = Mention::at(self.text, word.place.clone());
            found.extend(mention.map(|mention| (mention, groups.len())));
            groups.push(vec![code]);
        }
        Ok(named(apart(found), &groups, &turns))
    }

    /// The mentions of whole names, and the codes of the names of each group.
    fn whole_names(&self, turns: &Turns) -> (Found, Vec<Vec<u32>>) {
        let codes = ascending(turns.of_speaker.keys().copied().collect());
        let known = self.memories.speakers.known.read();
        let names: Vec<_> = codes.iter().map(|code| known.name(*code)).collect();
        let counts_case = |name: &str| !self.is_lower && self.is_ordinary(name);
        let names = names.iter().map(|name| (&**name, counts_case(name)));
        let Mentions { found, groups } = Mentions::of(self.text, names);
        let codes_of = |group: Vec<usize>| group.into_iter().map(|at| codes[at]).collect();
        (found, groups.into_iter().map(codes_of).collect())
    }

    /// Whether each word of a name is an ordinary word.
    fn is_ordinary(&self, name: &str) -> bool {
        let lexical = &self.memories.lexical;
        let is_stop_word = |word: &str| lexical.is_stop_word(word, self.collection);
        let words = names::words(name);
        words.iter().all(|(_, word)| ORDINARY.has(&names::key(word)) || is_stop_word(word))
    }

    /// The first name of the only speaker whose name begins so.
    fn first_name(&self, spelled: &Spelled, turns: &Turns) -> Option<FirstName> {
        let code = only(&spelled.beginning, turns)?;
        let is_initial = spelled.key.chars().nth(1).is_none();
        if is_initial || TITLES.has(&spelled.key) {
            return None;
        }
        let name = self.memories.speakers.known.read().name(code);
        let parts = names::words(&name);
        (parts.len() > 1).then(|| FirstName { code, text: parts[0].1.to_owned() })
    }

    /// Whether a word is a first name by its case and by the word before it.
    fn is_meant(&self, word: &Word<'_>, name: &FirstName) -> bool {
        let is_first = self.text[..word.place.start].trim_start().is_empty();
        let has_case = names::is_spelled_alike(&name.text, word.text);
        if self.spelled[word.spelled].is_ordinary {
            has_case && !is_first && !self.is_lower
        } else {
            has_case || !word.is_determined
        }
    }

    /// The speakers that others address by some of the text's words, by the positions of these.
    fn aliases(
        &self,
        spelled: impl Iterator<Item = usize>,
        docids: &[u32],
        deadline: &Deadline,
    ) -> Result<HashMap<usize, u32>, Error> {
        let may_be_alias = |at: &usize| {
            let spelled = &self.spelled[*at];
            spelled.address != NOBODY && (spelled.is_capital || self.is_lower)
        };
        let wanted: Vec<usize> = spelled.filter(may_be_alias).collect();
        let address = |at: &usize| self.spelled[*at].address;
        let names = wanted.iter().map(address).collect();
        let addressed = self.addressed(&names, docids, deadline)?;
        let majorities: HashMap<u32, u32> = addressed
            .into_iter()
            .filter_map(|(address, addressed)| Some((address, majority(&addressed)?)))
            .collect();
        let alias = |at: usize| Some((at, *majorities.get(&address(&at))?));
        Ok(wanted.into_iter().filter_map(alias).collect())
    }

    /// The speakers that turns address by each of some names, in no order.
    fn addressed(
        &self,
        names: &HashSet<u32>,
        docids: &[u32],
        deadline: &Deadline,
    ) -> Result<HashMap<u32, Vec<u32>>, Error> {
        let mut addressed: HashMap<u32, Vec<u32>> = HashMap::new();
        if names.is_empty() {
            return Ok(addressed);
        }
        for of_chunk in docids.chunks(MANY_ROWS) {
            deadline.check()?;
            for docid in of_chunk {
                let name = self.memories.speakers.address(*docid);
                if name == NOBODY || !names.contains(&name) {
                    continue;
                }
                addressed.entry(name).or_default().extend(self.addressee(*docid, docids));
            }
        }
        Ok(addressed)
    }

    /// The other speaker whose turn is the nearest before a turn of a session, or else after it.
    fn addressee(&self, docid: u32, docids: &[u32]) -> Option<u32> {
        let MemoryState { speakers, columns, .. } = self.memories;
        let own = speakers.of(docid);
        let other = |side: fn(&Columns, u32) -> u32| {
            let neighbour = |at: &u32| Some(side(columns, *at));
            let turns = std::iter::successors(neighbour(&docid), neighbour).take(REACH);
            let selected = turns.take_while(|docid| docids.binary_search(docid).is_ok());
            selected.map(|docid| speakers.of(docid)).find(|code| ![NOBODY, own].contains(code))
        };
        if own == NOBODY { None } else { other(Columns::previous).or_else(|| other(Columns::next)) }
    }
}

/// The only one of some codes that is a speaker's.
fn only(codes: &[u32], turns: &Turns) -> Option<u32> {
    let mut speakers = codes.iter().filter(|code| turns.of_speaker.contains_key(code));
    let first = speakers.next()?;
    speakers.all(|code| code == first).then_some(*first)
}

/// The only speaker whose name begins nearly as a word that begins no speaker's name.
fn by_near_spelling(word: &Spelled, turns: &Turns) -> Option<u32> {
    let begins = word.beginning.iter().any(|code| turns.of_speaker.contains_key(code));
    if begins { None } else { only(&word.near, turns) }
}

/// The speaker that most of the turns address, if these are enough.
fn majority(addressed: &[u32]) -> Option<u32> {
    // The vote of Boyer and Moore, 1981: only this one can be of more than half.
    let (most, _) = addressed.iter().fold((NOBODY, 0_usize), |(most, lead), code| match lead {
        0 => (*code, 1),
        _ if most == *code => (most, lead + 1),
        _ => (most, lead - 1),
    });
    let count = addressed.iter().filter(|code| **code == most).count();
    let is_clear = count * 4 >= addressed.len() * MIN_QUARTERS;
    (is_clear && addressed.len() >= MIN_ADDRESSES).then_some(most)
}

fn ascending(mut codes: Vec<u32>) -> Vec<u32> {
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Whether a place is inside one of the mentions, which are in order.
fn is_inside(found: &Found, place: usize) -> bool {
    let before = found.partition_point(|(mention, _)| mention.place.start <= place);
    before.checked_sub(1).is_some_and(|last| found[last].0.place.contains(&place))
}

/// The mentions in order without those that begin inside an earlier one, such as in its "'s".
fn apart(mut found: Found) -> Found {
    found.sort_unstable_by_key(|(mention, _)| mention.place.start);
    let mut end = 0;
    found.retain(|(mention, _)| {
        let is_apart = mention.place.start >= end;
        end = if is_apart { mention.place.end } else { end };
        is_apart
    });
    found
}

fn named(found: Found, groups: &[Vec<u32>], turns: &Turns) -> NamedSpeakers {
    let share = |turns_of: usize| turns_of as f64 / turns.all.max(1) as f64;
    let used: BTreeSet<usize> = found.iter().map(|(_, group)| *group).collect();
    let codes = used.iter().flat_map(|group| &groups[*group]).copied().collect();
    let codes = ascending(codes);
    let largest = |group: usize| groups[group].iter().map(|code| turns.of_speaker[code]).max();
    let shares: HashMap<usize, f64> =
        used.into_iter().map(|group| (group, share(largest(group).unwrap_or_default()))).collect();
    let mentions = found.into_iter().map(|(mention, group)| (mention, shares[&group])).collect();
    let of_all = codes.iter().map(|code| turns.of_speaker[code]).sum();
    NamedSpeakers { mentions, share: share(of_all), codes }
}
