//! The places in a text where names stand, found in one pass whatever the number of names.

use std::collections::HashMap;
use std::ops::Range;

use super::names::{self, Mention};

/// A name of more than this many bytes for each of a text cannot stand in it: Unicode forms of one
/// text differ in length by less.
const MAX_BYTES_FOR_ONE: usize = 64;

/// The mentions of names in a text.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    /// In the order of the text, each with the number of its group.
    pub(crate) found: Vec<(Mention, usize)>,
    /// Names of one spelling, by their positions among the given ones, ascending.
    pub(crate) groups: Vec<Vec<usize>>,
}

impl Mentions {
    /// The mentions in a text of names, each with whether it is found in its own case alone; in a
    /// text in lower case no name may be.
    ///
    /// Of several names that begin at one word the longest counts, and of those in a text with
    /// capitals the ones of the same case.
    pub(crate) fn of<'n>(text: &str, names: impl IntoIterator<Item = (&'n str, bool)>) -> Self {
        let mut tree = NameTree::new(NumberedText::new(text));
        for (at, (name, counts_case)) in names.into_iter().enumerate() {
            tree.insert(at, name, counts_case);
        }
        Self { found: tree.mentions(), groups: tree.groups }
    }
}

/// A text with its words and the separators between them as numbers.
struct NumberedText<'t> {
    text: &'t str,
    words: Vec<(Range<usize>, &'t str)>,
    numbers: HashMap<String, u32>,
    /// Of the words in their own case.
    exact: Vec<u32>,
    /// Of the words in lower case.
    folded: Vec<u32>,
    /// Of the separators, each before its word; the first has none.
    gaps: Vec<u32>,
}

/// No separator, in front of a first word.
const NO_GAP: u32 = u32::MAX;

impl<'t> NumberedText<'t> {
    fn new(text: &'t str) -> Self {
        let words = names::words(text);
        let mut numbers = HashMap::new();
        let mut number = |spelled: String| {
            let next = numbers.len() as u32;
            *numbers.entry(spelled).or_insert(next)
        };
        let mut of_words = |in_lower_case| -> Vec<u32> {
            words.iter().map(|(_, word)| number(names::spelled(word, in_lower_case))).collect()
        };
        let (exact, folded) = (of_words(false), of_words(true));
        let between = words.windows(2).map(|pair| number(names::gap(text, pair)));
        let gaps = std::iter::once(NO_GAP).chain(between).collect();
        Self { text, words, numbers, exact, folded, gaps }
    }

    fn number(&self, spelled: &str) -> Option<u32> {
        self.numbers.get(spelled).copied()
    }

    /// The words of a name in lower case with the separators before them, and the words in their own
    /// case if the text has these; `None` if it lacks a word or a separator.
    fn path(&self, name: &str) -> Option<(Path, Option<Vec<u32>>)> {
        if name.len() > self.text.len().saturating_mul(MAX_BYTES_FOR_ONE) {
            return None;
        }
        let words = names::words(name);
        if words.is_empty() || words.len() > self.words.len() {
            return None;
        }
        let mut path = Vec::new();
        for (at, (_, word)) in words.iter().enumerate() {
            let gap = match at.checked_sub(1) {
                Some(before) => self.number(&names::gap(name, &words[before..=at]))?,
                None => NO_GAP,
            };
            path.push((gap, self.number(&names::spelled(word, true))?));
        }
        let exact = words.iter().map(|(_, word)| self.number(&names::spelled(word, false)));
        Some((path, exact.collect()))
    }
}

/// The words of a name, each behind the separator before it, by their numbers.
type Path = Vec<(u32, u32)>;

/// Names in the tree of their words; the root is the first node.
struct NameTree<'t> {
    text: NumberedText<'t>,
    /// From a node by a separator and a word.
    edges: HashMap<(usize, u32, u32), usize>,
    nodes: Vec<Node>,
    groups: Vec<Vec<usize>>,
}

/// The names that end at a node, by the numbers of their groups.
#[derive(Default)]
struct Node {
    /// Those that are found in any case.
    free: Option<usize>,
    /// All that the text may have, by their words in their own case.
    by_case: HashMap<Vec<u32>, usize>,
}

impl<'t> NameTree<'t> {
    fn new(text: NumberedText<'t>) -> Self {
        Self { text, edges: HashMap::new(), nodes: vec![Node::default()], groups: Vec::new() }
    }

    fn insert(&mut self, name_at: usize, name: &str, counts_case: bool) {
        let Some((path, exact)) = self.text.path(name) else { return };
        let node = path.into_iter().fold(0, |node, (gap, word)| self.child(node, gap, word));
        let Self { nodes, groups, .. } = self;
        let mut new_group = || {
            groups.push(Vec::new());
            groups.len() - 1
        };
        let node = &mut nodes[node];
        let free = (!counts_case).then(|| *node.free.get_or_insert_with(&mut new_group));
        let exact = exact.map(|exact| *node.by_case.entry(exact).or_insert_with(new_group));
        for group in free.into_iter().chain(exact) {
            groups[group].push(name_at);
        }
    }

    fn child(&mut self, node: usize, gap: u32, word: u32) -> usize {
        let next = self.nodes.len();
        let child = *self.edges.entry((node, gap, word)).or_insert(next);
        if child == next {
            self.nodes.push(Node::default());
        }
        child
    }

    fn mentions(&self) -> Vec<(Mention, usize)> {
        let (words, is_lower) = (&self.text.words, names::is_all_lower(self.text.text));
        let mut found = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let mention = self.mention(at, is_lower);
            let end = mention.as_ref().map_or(0, |(mention, _)| mention.place.end);
            found.extend(mention);
            at += 1;
            at += words[at..].iter().take_while(|(place, _)| place.start < end).count();
        }
        found
    }

    /// The longest names that the words from a position on begin with.
    fn mention(&self, at: usize, is_lower: bool) -> Option<(Mention, usize)> {
        let NumberedText { text, words, folded, gaps, .. } = &self.text;
        let mut is_free = None;
        let (mut node, mut longest) = (0, None);
        for end in at..words.len() {
            let gap = if end == at { NO_GAP } else { gaps[end] };
            let Some(child) = self.edges.get(&(node, gap, folded[end])) else { break };
            node = *child;
            let is_free = *is_free.get_or_insert_with(|| !names::is_determined(words, at));
            let group = self.group(node, at..end + 1, is_free, is_lower);
            let place = words[at].0.start..words[end].0.end;
            longest =
                group.zip(Mention::at(text, place)).map(|(group, at)| (at, group)).or(longest);
        }
        longest
    }

    /// The names of a node that words of the text spell.
    fn group(
        &self,
        node: usize,
        here: Range<usize>,
        is_free: bool,
        is_lower: bool,
    ) -> Option<usize> {
        let node = &self.nodes[node];
        let free = node.free.filter(|_| is_free);
        if is_lower && free.is_some() || node.by_case.is_empty() {
            return free;
        }
        node.by_case.get(&self.text.exact[here]).copied().or(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, names: &[(&str, bool)]) -> Vec<Vec<usize>> {
        let mentions = Mentions::of(text, names.iter().copied());
        mentions.found.iter().map(|(_, group)| mentions.groups[*group].clone()).collect()
    }

    #[test]
    fn case_counts_for_some_names_only() {
        let names = [("Elise", false), ("Will", true), ("will", true)];
        assert_eq!(named("Where will elise go?", &names), [vec![2], vec![0]]);
        assert_eq!(named("ELISE and Will", &names), [vec![0], vec![1]]);
        assert_eq!(named("Did the elise or the Elise sing?", &names), [vec![0]]);
        let both = [("Elise", false), ("elise", false)];
        let of = |text| named(text, &both)[0].clone();
        assert_eq!([of("Did Elise?"), of("Did elise?")], [vec![0], vec![1]]);
        assert_eq!(of("did elise?"), [0, 1]);
        assert_eq!(of("Did ELISE?"), [0, 1]);
    }

    #[test]
    fn a_shorter_name_counts_where_the_longer_is_a_part_of_a_word() {
        let names = [("Ana", false), ("Ana Maria", false)];
        assert_eq!(named("Ana Maria-Luise and Ana Maria", &names), [vec![0], vec![1]]);
    }

    #[test]
    fn many_names_in_a_long_text_take_no_product_of_both() {
        let names: Vec<String> = (0..20_000).map(|number| format!("Ana {number}")).collect();
        let text = "Ana 7 Ana ".repeat(20_000);
        let mentions = Mentions::of(&text, names.iter().map(|name| (name.as_str(), false)));
        assert_eq!((mentions.found.len(), mentions.groups.len()), (20_000, 2));
    }
}
