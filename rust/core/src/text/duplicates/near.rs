//! Near duplicates: texts that share most of their trigrams, and all of their numbers.

use std::collections::HashMap;

use super::NormalForms;
use super::overlaps::Overlaps;
use super::trigrams::{RarestFirst, Trigrams};

/// Let each original that nearly repeats an earlier one, and all exact duplicates of it, name that
/// one instead.
pub(super) fn near_duplicates(forms: &NormalForms, near: f64, originals: &mut [usize]) {
    for places in groups_of_equal_numbers(forms, originals) {
        if places.len() > 1 {
            compare(forms, &places, near, originals);
        }
    }
    for place in 0..originals.len() {
        originals[place] = originals[originals[place]];
    }
}

/// The places of originals, in order, in groups of texts with the same numbers.
fn groups_of_equal_numbers(forms: &NormalForms, originals: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, form) in forms.iter().enumerate().filter(|&(place, _)| originals[place] == place) {
        groups.entry(numbers(form)).or_default().push(place);
    }
    groups.into_values().collect()
}

/// The digits of a text, those of different numbers apart.
fn numbers(form: &str) -> String {
    let mut numbers = String::new();
    let mut end = None;
    let is_digit = |&(_, character): &(usize, char)| character.is_numeric();
    for (at, digit) in form.char_indices().filter(is_digit) {
        if end != Some(at) {
            numbers.push(' ');
        }
        numbers.push(digit);
        end = Some(at + digit.len_utf8());
    }
    numbers
}

/// Compare each text of a group with those before it that repeat none.
fn compare(forms: &NormalForms, places: &[usize], near: f64, originals: &mut [usize]) {
    let mut trigrams = Trigrams::of(places.iter().map(|&place| forms.at(place)));
    let mut overlaps = Overlaps::new(&trigrams);
    let (mut kept, mut sizes) = (Vec::<usize>::new(), Vec::<usize>::new());
    for (at, &place) in places.iter().enumerate() {
        let grams = trigrams.rarest_first(at, near);
        if let Some(found) = first_near(&mut overlaps, &grams, near, &sizes) {
            originals[place] = kept[found];
        } else {
            overlaps.keep(grams.all);
            kept.push(place);
            sizes.push(grams.all.len());
        }
    }
}

/// The first kept text that is near.
///
/// Two sets that share so much of their union share as much of either, so a set lacks few of the
/// rarest of a near one (prefix filtering: Chaudhuri, Ganti, Kaushik, ICDE 2006). Most texts need no
/// more than that: no kept text has enough of their rarest trigrams.
fn first_near(
    overlaps: &mut Overlaps,
    grams: &RarestFirst<'_>,
    near: f64,
    sizes: &[usize],
) -> Option<usize> {
    overlaps.start();
    let (rarest, others) = grams.all.split_at(grams.rarest);
    overlaps.count(rarest);
    if !overlaps.shared().iter().any(|&shared| shared as usize >= grams.required) {
        return None;
    }
    overlaps.count(others);
    let is_near = |(&shared, &size): (&u32, &usize)| {
        let union = size + grams.all.len() - shared as usize;
        f64::from(shared) >= near * union as f64
    };
    overlaps.shared().iter().zip(sizes).position(is_near)
}
