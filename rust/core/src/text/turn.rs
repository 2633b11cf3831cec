//! Stand-in until merged.
/// A turn.
pub struct Turn<'a> {
    /// Its label.
    pub label: Option<&'a str>,
}
/// Read a turn.
pub fn turn(content: &str) -> Turn<'_> {
    let label = content.split_once(": ").map(|(label, _)| label);
    let label = label.filter(|label| label.len() <= 40 && label.chars().next().is_some_and(char::is_uppercase));
    Turn { label }
}
