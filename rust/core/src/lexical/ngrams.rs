//! The character n-grams of a term.

/// Characters of an n-gram (docs/project/lab/quality.md).
pub(super) const NGRAM_CHARACTERS: usize = 4;

/// Stands before and after a term; no term holds it.
const BOUNDARY: char = '\0';

/// Consecutive characters of a bounded term; shorter terms are padded with boundaries.
pub(super) type Ngram = [char; NGRAM_CHARACTERS];

/// Call `visit` with each run of `LENGTH` characters of a bounded term once, in order of first
/// appearance.
pub(super) fn each_ngram<const LENGTH: usize>(term: &str, mut visit: impl FnMut([char; LENGTH])) {
    let mut bounded: Vec<char> = Vec::with_capacity(term.len() + LENGTH);
    bounded.push(BOUNDARY);
    bounded.extend(term.chars());
    bounded.push(BOUNDARY);
    while bounded.len() < LENGTH {
        bounded.push(BOUNDARY);
    }
    let ngram =
        |place: usize| -> [char; LENGTH] { std::array::from_fn(|offset| bounded[place + offset]) };
    for place in 0..=bounded.len() - LENGTH {
        let this = ngram(place);
        if (0..place).all(|before| ngram(before) != this) {
            visit(this);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ngrams(term: &str) -> Vec<String> {
        let mut ngrams = Vec::new();
        each_ngram(term, |ngram: Ngram| {
            ngrams.push(ngram.iter().collect::<String>().replace('\0', "|"));
        });
        ngrams
    }

    #[test]
    fn ngrams_overlap_and_mark_both_ends_of_the_term() {
        assert_eq!(ngrams("train"), ["|tra", "trai", "rain", "ain|"]);
    }

    #[test]
    fn a_short_term_is_one_ngram() {
        assert_eq!(ngrams("a"), ["|a||"]);
        assert_eq!(ngrams("ab"), ["|ab|"]);
        assert_eq!(ngrams("猫犬"), ["|猫犬|"]);
    }

    #[test]
    fn a_repeated_ngram_counts_once() {
        assert_eq!(ngrams("aaaaaaa"), ["|aaa", "aaaa", "aaa|"]);
    }
}
