//! Texts that repeat earlier ones of a list.

mod near;
mod overlaps;
mod trigrams;

use std::collections::HashMap;
use std::ops::Range;

use self::near::near_duplicates;
use super::normalise::{beginning_in, normalise_in};
use crate::Error;

/// Return for each text the place of the earlier one that it repeats, or its own place.
///
/// Texts repeat each other if their normal forms are the same. With `near` they also do if the
/// numbers in both are the same, in the same order, and the Jaccard similarity of the sets of three
/// consecutive characters of the normal forms is at least so much. A text is compared with those
/// that repeat none, and repeats the first that matches; so the place named is always one of those.
///
/// Normal forms themselves are compared, not digests, so no two texts can be forged to collide.
/// Time is linear in the length of the texts; with `near` O(g·n/64) more, for n texts that have g
/// different trigrams each in sum, whatever the texts are.
///
/// # Errors
///
/// When `near` is not a number from 0 to 1.
///
/// # Examples
/// ```
/// use mnemic_core::text::duplicates;
///
/// let texts = ["Hello world", "Tea at 5", "“HELLO  world!”", "Hello, world", "Tea at 6"];
/// assert_eq!(duplicates(&texts, None), Ok(vec![0, 1, 0, 3, 4]));
/// assert_eq!(duplicates(&texts, Some(0.5)), Ok(vec![0, 1, 0, 0, 4]));
/// ```
pub fn duplicates<T: AsRef<str>>(texts: &[T], near: Option<f64>) -> Result<Vec<usize>, Error> {
    if let Some(near) = near.filter(|near| !(0.0..=1.0).contains(near)) {
        return Err(Error::ShareOutOfRange { what: "near", found: near.to_string() });
    }
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    let Some(near) = near else { return Ok(exact_duplicates(&texts)) };
    let forms = NormalForms::of(&texts, normalise_in);
    let mut originals = first_places(&forms);
    near_duplicates(&forms, near, &mut originals);
    Ok(originals)
}

/// The first place of each normal form. Normal forms are computed whole only for texts whose forms
/// begin alike, so that most texts are read no further than their start.
fn exact_duplicates(texts: &[&str]) -> Vec<usize> {
    let mut originals = first_places(&NormalForms::of(texts, beginning_in));
    let mut is_shared = vec![false; texts.len()];
    for (place, &first) in originals.iter().enumerate().filter(|(place, first)| place != *first) {
        is_shared[place] = true;
        is_shared[first] = true;
    }
    let shared: Vec<usize> = (0..texts.len()).filter(|&place| is_shared[place]).collect();
    let alike: Vec<&str> = shared.iter().map(|&place| texts[place]).collect();
    let firsts = first_places(&NormalForms::of(&alike, normalise_in));
    for (&place, first) in shared.iter().zip(firsts) {
        originals[place] = shared[first];
    }
    originals
}

/// The normal forms of texts, one behind the other.
struct NormalForms {
    text: String,
    ranges: Vec<Range<usize>>,
}

impl NormalForms {
    /// Write the forms that `write` returns, which may be parts of normal forms.
    fn of(texts: &[&str], write: for<'a> fn(&'a mut String, &str) -> &'a str) -> Self {
        let (mut text, mut buffer) = (String::new(), String::new());
        let append = |one: &&str| {
            let start = text.len();
            text.push_str(write(&mut buffer, one));
            start..text.len()
        };
        let ranges = texts.iter().map(append).collect();
        Self { text, ranges }
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        self.ranges.iter().map(|range| &self.text[range.clone()])
    }

    fn at(&self, place: usize) -> &str {
        &self.text[self.ranges[place].clone()]
    }
}

/// The first place of each form. The table's hash is keyed by a random number, so texts cannot be
/// chosen to share its buckets.
fn first_places(forms: &NormalForms) -> Vec<usize> {
    let mut places = HashMap::with_capacity(forms.ranges.len());
    forms.iter().enumerate().map(|(place, form)| *places.entry(form).or_insert(place)).collect()
}
