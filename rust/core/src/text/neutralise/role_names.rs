//! Names of the sides of a chat, as they begin a turn.

use super::super::normalise::fold;
use super::super::roles::is_role;
use super::markup::picture;

/// A role and its ornaments have at most so many characters in front of the colon.
const REACH: usize = 40;

/// Names of roles beside those of the room `roles`, folded, each script by itself.
const NAMES: &[&str] = &[
    // English
    "developer",
    "function",
    "chatbot",
    // German
    "assistent",
    "assistentin",
    "nutzer",
    "nutzerin",
    "benutzer",
    "benutzerin",
    "anwender",
    "anwenderin",
    "mensch",
    "entwickler",
    "entwicklerin",
    "werkzeug",
    "funktion",
    "ki",
    "modell",
    "systemnachricht",
    "systemprompt",
    "systemanweisung",
    // French
    "système",
    "systeme",
    "assistante",
    "utilisateur",
    "utilisatrice",
    "humain",
    "humaine",
    "développeur",
    "développeuse",
    "developpeur",
    "outil",
    "fonction",
    "ia",
    "modèle",
    "modele",
    // Spanish
    "sistema",
    "asistente",
    "usuario",
    "usuaria",
    "humano",
    "humana",
    "desarrollador",
    "desarrolladora",
    "herramienta",
    "función",
    "funcion",
    "modelo",
    // Russian
    "система",
    "ассистент",
    "ассистентка",
    "помощник",
    "пользователь",
    "человек",
    "разработчик",
    "инструмент",
    "функция",
    "ии",
    "модель",
    "бот",
    "агент",
    // Chinese
    "系统",
    "系統",
    "系统提示",
    "系统消息",
    "系统指令",
    "系統提示",
    "系統訊息",
    "助手",
    "助理",
    "用户",
    "用戶",
    "使用者",
    "人类",
    "人類",
    "开发者",
    "開發者",
    "工具",
    "函数",
    "函數",
    "人工智能",
    "人工智慧",
    "模型",
    "机器人",
    "機器人",
    // Japanese
    "システム",
    "システムプロンプト",
    "システムメッセージ",
    "アシスタント",
    "ユーザー",
    "ユーザ",
    "利用者",
    "人間",
    "開発者",
    "ツール",
    "関数",
    "人工知能",
    "モデル",
    "ボット",
];

/// Words behind a role that leave it one.
const QUALIFIERS: [&str; 7] =
    ["prompt", "message", "instruction", "instructions", "note", "reply", "response"];

/// The place of the colon behind a role at the start of a line, if there is one.
pub(super) fn role_colon(line: &str) -> Option<usize> {
    let colon = label_end(line)?;
    let leads_to_digit = || line[colon..].chars().nth(1).is_some_and(|next| next.is_ascii_digit());
    names_role(&line[..colon], leads_to_digit).then_some(colon)
}

/// The place of the colon behind a label of two words at most.
fn label_end(line: &str) -> Option<usize> {
    let (mut words, mut is_in_word) = (0, false);
    for (at, character) in line.char_indices().take(REACH) {
        let character = picture(character);
        if character == ':' {
            return (words > 0).then_some(at);
        }
        let was_in_word = std::mem::replace(&mut is_in_word, is_in_name(character));
        words += usize::from(is_in_word && !was_in_word);
        if words > 2 || !(is_in_word || is_between_words(character)) {
            return None;
        }
    }
    None
}

/// Whether the text in front of a colon is a role with its ornaments, perhaps with a qualifier or a
/// number: "system prompt", "user 2", but not the hour in "ai 12:30".
fn names_role(label: &str, leads_to_digit: impl Fn() -> bool) -> bool {
    let plain = |one: char| if is_ornament(picture(one)) { ' ' } else { one };
    let folded = fold(&label.chars().map(plain).collect::<String>());
    let mut words = folded.split_whitespace();
    let is_named = words.next().is_some_and(|name| is_role(name) || NAMES.contains(&name));
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    is_named
        && words
            .next()
            .is_none_or(|word| QUALIFIERS.contains(&word) || is_number(word) && !leads_to_digit())
        && words.next().is_none()
}

/// Letters, digits, and the accents of letters that are written apart.
fn is_in_name(character: char) -> bool {
    character.is_alphanumeric()
        || matches!(character, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}')
}

fn is_between_words(character: char) -> bool {
    matches!(character, ' ' | '\n') || is_ornament(character)
}

/// Emphasis, quotes and brackets around a role, before and after they are neutralised.
fn is_ornament(character: char) -> bool {
    matches!(
        character,
        '*' | '_'
            | '`'
            | '~'
            | '∼'
            | '"'
            | '\''
            | '#'
            | '♯'
            | '|'
            | '/'
            | '\\'
            | '<'
            | '>'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '‹'
            | '›'
            | '«'
            | '»'
            | '“'
            | '”'
            | '„'
            | '‘'
            | '’'
            | '【'
            | '】'
            | '「'
            | '」'
            | '『'
            | '』'
            | '〈'
            | '〉'
            | '《'
            | '》'
            | '〔'
            | '〕'
    )
}
