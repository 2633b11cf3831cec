//! Near spellings of a name.

/// Names of fewer letters have too many neighbours: "Jon" and "Joe" are two people.
const MIN_LETTERS: usize = 5;

/// A name's spelling without differences that are often mistaken: doubled letters count once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Spelling {
    letters: Vec<char>,
    /// A bit for each letter that occurs; several letters share one.
    occurring: u32,
}

/// The most bits in which near spellings differ: a letter replaced by another.
const MAX_OTHER_BITS: u32 = 2;

impl Spelling {
    /// The spelling of a word in lower case; none of a short one, or of one that is not letters.
    pub(crate) fn new(word: &str) -> Option<Self> {
        let mut letters: Vec<char> = word.chars().collect();
        if letters.len() < MIN_LETTERS || !letters.iter().all(|letter| letter.is_alphabetic()) {
            return None;
        }
        letters.dedup();
        let bit = |letter: &char| 1 << (u32::from(*letter) % u32::BITS);
        let occurring = letters.iter().fold(0, |bits, letter| bits | bit(letter));
        Some(Self { letters, occurring })
    }

    /// The first letter and the number of letters.
    pub(crate) fn shape(&self) -> (char, usize) {
        (self.letters[0], self.letters.len())
    }

    /// The shapes of all near spellings.
    pub(crate) fn near_shapes(&self) -> [(char, usize); 3] {
        let (first, length) = self.shape();
        [length - 1, length, length + 1].map(|length| (first, length))
    }

    /// Whether the first letters are the same and at most one letter has to be inserted, removed,
    /// replaced or exchanged with the next (Damerau, 1964).
    pub(crate) fn is_near(&self, other: &Self) -> bool {
        let other_bits = (self.occurring ^ other.occurring).count_ones();
        let (one, other) = (&self.letters, &other.letters);
        if other_bits > MAX_OTHER_BITS || one.first() != other.first() {
            return false;
        }
        let begin = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        let (one, other) = (&one[begin..], &other[begin..]);
        let ends = one.iter().rev().zip(other.iter().rev());
        let end = ends.take_while(|(one, other)| one == other).count();
        match (&one[..one.len() - end], &other[..other.len() - end]) {
            ([first, second], [third, fourth]) => first == fourth && second == third,
            (one, other) => one.len() <= 1 && other.len() <= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: &str, other: &str) -> bool {
        let [one, other] = [one, other].map(|word| Spelling::new(word).expect("a long word"));
        assert_eq!(one.is_near(&other), other.is_near(&one));
        assert!(!one.is_near(&other) || one.near_shapes().contains(&other.shape()));
        one.is_near(&other)
    }

    #[test]
    fn one_letter_may_differ_and_doubled_letters_count_once() {
        for (one, other) in [
            ("muhhamed", "muhammad"),
            ("melanie", "melani"),
            ("caroline", "carolyne"),
            ("joanna", "johana"),
            ("brian", "brain"),
            ("hannah", "hanna"),
            ("sarah", "sarah"),
            ("aaron", "arron"),
        ] {
            assert!(near(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("melanie", "milena"),
            ("caroline", "karoline"),
            ("martin", "marianne"),
            ("brian", "brnai"),
            ("anabel", "annemarie"),
        ] {
            assert!(!near(one, other), "{one} {other}");
        }
    }

    #[test]
    fn short_words_and_others_have_no_near_spelling() {
        assert!(
            ["anna", "jon", "", "o'brien", "r2d2x"].map(Spelling::new).iter().all(Option::is_none)
        );
    }
}
