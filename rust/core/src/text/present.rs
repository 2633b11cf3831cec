//! Whether a query asks for what holds at present: "Where do I live now?", "my current job".

use super::names::words;

/// Words of the present in English, German, French and Spanish.
const WORDS: [&str; 24] = [
    "now",
    "current",
    "currently",
    "nowadays",
    "presently",
    "jetzt",
    "derzeit",
    "zurzeit",
    "momentan",
    "gegenwärtig",
    "heutzutage",
    "aktuell",
    "aktuelle",
    "aktuellen",
    "aktueller",
    "aktuelles",
    "maintenant",
    "actuellement",
    "actuel",
    "actuelle",
    "ahora",
    "actualmente",
    "actual",
    "actuales",
];
const PHRASES: [[&str; 2]; 1] = [["these", "days"]];
/// The same in Chinese, Japanese and Korean, where no space need be around them.
const UNSPACED: [&str; 13] = [
    "现在", "目前", "当前", "如今", "現在", "今は", "今の", "今も", "目下", "지금", "현재", "요즘",
    "요새",
];

/// Whether a query asks for what holds at present.
pub(crate) fn asks_for_present(query: &str) -> bool {
    let lower = query.to_lowercase();
    let words: Vec<&str> = words(&lower).into_iter().map(|(_, word)| word).collect();
    let has_word = words.iter().any(|word| WORDS.contains(word));
    let has_phrase = words.windows(2).any(|pair| PHRASES.iter().any(|phrase| pair == phrase));
    let has_unspaced = || !query.is_ascii() && UNSPACED.iter().any(|word| query.contains(word));
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
