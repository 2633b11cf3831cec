//! Whether a query asks for what holds at present: "Where do I live now?", "my current job".

use super::names::words;
use super::word_table::{WordTable, Words, list};

const FILE: &str = include_str!("../../data/questions.txt");

static WORDS: Words = Words::new(|| WordTable::of_list(FILE, "present"));

/// Whether a query asks for what holds at present.
pub(crate) fn asks_for_present(query: &str) -> bool {
    let lower = query.to_lowercase();
    let words: Vec<&str> = words(&lower).into_iter().map(|(_, word)| word).collect();
    let has_word = words.iter().any(|word| WORDS.has(word));
    let has_phrase = words.windows(2).any(|pair| pair == ["these", "days"]);
    let has_unspaced =
        || !query.is_ascii() && list(FILE, "unspaced present").any(|word| query.contains(word));
    has_word || has_phrase || has_unspaced()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_present_asks_for_it_in_each_language() {
        for query in [
            "Where do I live now?",
            "What is my CURRENT job",
            "What do I read these days?",
            "Wo wohne ich jetzt?",
            "Mein aktueller Beruf",
            "Où est-ce que j'habite maintenant ?",
            "¿Cuál es mi trabajo actual?",
            "我现在住在哪里",
            "今の仕事は何ですか",
            "지금 어디에 살아요?",
        ] {
            assert!(asks_for_present(query), "{query}");
        }
    }

    #[test]
    fn other_questions_do_not() {
        for query in [
            "Where do I live?",
            "I know nothing of the currency",
            "今日は何曜日",
            "in these long days",
            "",
        ] {
            assert!(!asks_for_present(query), "{query}");
        }
    }
}
