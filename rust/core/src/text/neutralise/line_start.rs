//! Markup at the start of a line: headings, rules, quotations, lists, fences, roles.

use super::markup::{is_fence, picture};
use super::rewriter::{Rewriter, Start};
use super::role_names::role_colon;

/// Most digits of a number in a list.
const MAX_DIGITS: usize = 9;

impl Rewriter<'_> {
    /// Replace the markup at the start of a line, note the colon of a role, and return the end of
    /// the markup.
    pub(super) fn start_line(&mut self, at: usize, start: Start) -> usize {
        let mut at = at;
        // A rule cannot begin before the character that kept an earlier one from being a rule.
        let mut no_rule_before = at;
        loop {
            let rest = &self.text[at..];
            let character = rest.chars().next().map_or('\0', picture);
            let end = match character {
                ' ' => at + 1,
                '-' | '=' | '*' | '_' if at >= no_rule_before => match self.rule_end(at, character)
                {
                    Ok(end) => {
                        self.replace(at, end, "—");
                        return end;
                    }
                    Err(end) => {
                        no_rule_before = end;
                        continue;
                    }
                },
                '-' | '*' | '+' => self.bullet(at, start),
                '#' => self.heading(at),
                '>' => self.quotation(at),
                '~' => self.tilde_fence(at),
                '0'..='9' => self.number(at, start),
                _ => at,
            };
            if end == at {
                self.colon = self.colon.filter(|&colon| colon >= at);
                self.colon = self.colon.or_else(|| role_colon(&self.text[at..]).map(|c| at + c));
                return at;
            }
            at = end;
        }
    }

    /// The end of a line that holds nothing but one character and spaces; otherwise the place of
    /// the character that ends the rule, as an error.
    fn rule_end(&self, at: usize, character: char) -> Result<usize, usize> {
        let is_rule = |one: char| one == ' ' || picture(one) == character;
        let is_rule_of_lines = |one: char| one == '\n' || is_rule(one);
        let is_of_text = at == 0 && matches!(character, '*' | '_');
        if is_of_text && self.text.trim_start_matches(is_rule_of_lines).is_empty() {
            // Lines that are too short for a rule will stand in one.
            let count = self.text.chars().filter(|one| !matches!(one, ' ' | '\n')).count();
            return if count >= 3 { Ok(self.text.len()) } else { Err(self.text.len()) };
        }
        let rest = self.text[at..].trim_start_matches(is_rule);
        let end = self.text.len() - rest.len();
        let count = || self.text[at..end].chars().filter(|one| *one != ' ').count();
        let is_line = rest.is_empty() || rest.starts_with('\n');
        let min = if matches!(character, '-' | '=') { 1 } else { 3 };
        if is_line && count() >= min { Ok(end) } else { Err(end.max(at + 1)) }
    }

    fn heading(&mut self, at: usize) -> usize {
        let (end, count) = self.run(at, '#');
        if count < 2 && !self.is_space_at(end) {
            return at;
        }
        // A selector of a variant of "#" would be left without its character.
        let rest =
            self.text[end..].trim_start_matches(|one| matches!(one, '\u{fe00}'..='\u{fe0f}'));
        let end = self.text.len() - rest.len();
        self.replace(at, end, &"♯".repeat(count));
        end
    }

    fn quotation(&mut self, at: usize) -> usize {
        let (end, _) = self.run(at, '>');
        self.replace_each(at, end, "›");
        end
    }

    fn tilde_fence(&mut self, at: usize) -> usize {
        let (end, count) = self.run(at, '~');
        if !is_fence(count) {
            return at;
        }
        self.replace_each(at, end, "∼");
        end
    }

    /// A mark of a list; in a later line it is only passed over.
    fn bullet(&mut self, at: usize, start: Start) -> usize {
        let end = at + self.text[at..].chars().next().map_or(0, char::len_utf8);
        if !self.is_space_at(end) {
            return at;
        }
        if start == Start::OfText {
            self.replace(at, end, "•");
        }
        end
    }

    /// The number of an item of a list, as `1.` or `1)`.
    fn number(&mut self, at: usize, start: Start) -> usize {
        let is_digit = |&(_, one): &(usize, char)| picture(one).is_ascii_digit();
        let rest = || self.text[at..].char_indices().take(MAX_DIGITS + 1);
        let Some((point, mark)) = rest().find(|one| !is_digit(one)) else { return at };
        let end = at + point + mark.len_utf8();
        if !matches!(picture(mark), '.' | ')') || end == self.text.len() || !self.is_space_at(end) {
            return at;
        }
        if start == Start::OfText {
            let number = format!("({})", &self.text[at..at + point]);
            self.replace(at, end, &number);
        }
        end
    }

    fn is_space_at(&self, at: usize) -> bool {
        let rest = &self.text[at..];
        rest.is_empty() || rest.starts_with([' ', '\n'])
    }
}
