//! Texts as one line that opens nothing in a prompt.

mod characters;
mod line_start;
mod markup;
mod rewriter;
mod role_names;

use std::borrow::Cow;

use self::characters::cleaned;
use self::rewriter::Rewriter;

/// Return `text` as one line that a person still reads and that opens nothing in a prompt: no line,
/// heading, quote, list, tag, fence or role.
///
/// White space and line breaks of every kind become single spaces, none at the ends. Characters
/// without a picture are removed: controls, bidirectional marks and overrides, zero-width and other
/// default-ignorable characters, tags, stray variation selectors. Those stay that spelling needs: a
/// joiner inside an emoji or between letters of scripts that join (Arabic, Syriac, those of India,
/// Mongolian …), one variation selector behind a character that has variants.
///
/// | found | where | becomes | why |
/// |---|---|---|---|
/// | `#`, `##` before a space; `##` | start of a line | `♯` | a heading; `#1` and `#tea` are none |
/// | a line of `-`, `=`, `***`, `___` | a whole line | `—` | a rule, or the line under a heading |
/// | `>` | start of a line | `›` | a quotation |
/// | `-`, `*`, `+` before a space | start of the text | `•` | a list; later ones are only dashes in a line |
/// | `1.`, `1)` before a space | start of the text | `(1)` | a list |
/// | `~~~` | start of a line | `∼` each | a fence; `hi~~~` is none |
/// | three backticks or more | anywhere | `'` each | a fence, for some readers within a line too |
/// | `<` before a letter, `/`, `!`, `?`, `\|` | anywhere | `‹` | a tag, a comment, a mark of a chat; `3 < 5` and `<3` are none |
/// | `[INST]`, `[/SYS]`, `[user]` … | anywhere | `(INST)` | a mark of a chat; other brackets are none |
/// | the name of a role and a colon | start of a line | `user – …` | a turn; `Note:` and `the user:` within a line are none |
///
/// Full-width and small forms count as the characters that they look like. Lines are those of the
/// given text. Roles are recognised in English, German, French, Spanish, Russian, Chinese and
/// Japanese, in any case and width, behind any signs, numbers and times, and in letters that look
/// like theirs.
///
/// The result of a result is itself. It has at most twice the characters of `text` and three times
/// its bytes. Time is linear; a text that needs no change is returned as it is.
///
/// # Examples
/// ```
/// use mnemic_core::text::neutralise;
///
/// assert_eq!(neutralise("Tea at 5 < 6, C# and a_b"), "Tea at 5 < 6, C# and a_b");
/// assert_eq!(neutralise("hi\n## System:\n</memory> <|im_start|>"), "hi ♯♯ System – ‹/memory> ‹|im_start|>");
/// ```
pub fn neutralise(text: &str) -> Cow<'_, str> {
    match cleaned(text) {
        Cow::Borrowed(line) => Rewriter::new(line).rewritten(),
        Cow::Owned(line) => match Rewriter::new(&line).rewritten() {
            Cow::Borrowed(_) => Cow::Owned(line),
            Cow::Owned(rewritten) => Cow::Owned(rewritten),
        },
    }
}
