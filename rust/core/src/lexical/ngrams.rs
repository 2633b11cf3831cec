//! The character n-grams of a term.

/// Characters of a gram (F2 of the quality study: 4).
pub(super) const GRAM_CHARACTERS: usize = 4;

/// Stands before and after a term; no term holds it.
const BOUNDARY: char = '\0';

/// Consecutive characters of a bounded term; what is shorter is filled up with boundaries.
pub(super) type Gram = [char; GRAM_CHARACTERS];

/// Call `visit` with each run of `LENGTH` characters of a bounded term once, in order of first
/// appearance.
pub(super) fn each_gram<const LENGTH: usize>(term: &str, mut visit: impl FnMut([char; LENGTH])) {
    let mut bounded: Vec<char> = Vec::with_capacity(term.len() + LENGTH);
    bounded.push(BOUNDARY);
    bounded.extend(term.chars());
    bounded.push(BOUNDARY);
    while bounded.len() < LENGTH {
        bounded.push(BOUNDARY);
    }
    let gram =
        |place: usize| -> [char; LENGTH] { std::array::from_fn(|offset| bounded[place + offset]) };
    for place in 0..=bounded.len() - LENGTH {
        let this = gram(place);
        if (0..place).all(|before| gram(before) != this) {
            visit(this);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grams(term: &str) -> Vec<String> {
        let mut grams = Vec::new();
        each_gram(term, |gram: Gram| {
            grams.push(gram.iter().collect::<String>().replace('\0', "|"));
        });
        grams
    }

    #[test]
    fn grams_overlap_and_know_where_the_term_begins_and_ends() {
        assert_eq!(grams("train"), ["|tra", "trai", "rain", "ain|"]);
    }

    #[test]
    fn a_short_term_is_one_gram() {
        assert_eq!(grams("a"), ["|a||"]);
        assert_eq!(grams("ab"), ["|ab|"]);
        assert_eq!(grams("猫犬"), ["|猫犬|"]);
    }

    #[test]
    fn a_gram_that_comes_again_counts_once() {
        assert_eq!(grams("aaaaaaa"), ["|aaa", "aaaa", "aaa|"]);
    }
}
