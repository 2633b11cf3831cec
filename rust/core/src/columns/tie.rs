//! The order of memories with equal scores.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Interner;

/// Creation, id and user of a memory. The smallest is the best: the newest, then the smallest id,
/// then the first user by name, no user before all. Two users may use the same id, so only all
/// three make a total order; codes of users depend on the order in which memories were loaded.
#[derive(Clone, Copy)]
pub(crate) struct Tie<'columns> {
    pub(crate) created_at: i64,
    pub(crate) id: [u8; 16],
    pub(super) user: u32,
    pub(super) texts: &'columns Interner,
}

impl Tie<'_> {
    /// The user's name.
    pub(super) fn user_name(&self) -> Option<Arc<str>> {
        self.texts.text(self.user)
    }

    fn by_user(&self, other: &Self) -> Ordering {
        if self.user == other.user {
            return Ordering::Equal;
        }
        self.user_name().cmp(&other.user_name())
    }
}

impl Ord for Tie<'_> {
    // `_merged` in `mnemic/repository/find.py` merges rankings in the same order.
    fn cmp(&self, other: &Self) -> Ordering {
        let newest = other.created_at.cmp(&self.created_at);
        newest.then(self.id.cmp(&other.id)).then_with(|| self.by_user(other))
    }
}

impl PartialOrd for Tie<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Tie<'_> {}

impl PartialEq for Tie<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NO_TEXT;

    #[test]
    fn ties_go_to_the_newest_then_to_the_smallest_id_then_to_the_first_user_by_name() {
        let texts = Interner::default();
        let [zoe, alice] = ["zoe", "alice"].map(|name| texts.code(name));
        let tie = |created_at, id, user| Tie { created_at, id: [id; 16], user, texts: &texts };
        let sorted = [
            tie(2, 9, zoe),
            tie(1, 1, NO_TEXT),
            tie(1, 1, alice),
            tie(1, 1, zoe),
            tie(1, 2, NO_TEXT),
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(one.cmp(other), at.cmp(&other_at));
                assert_eq!(one == other, at == other_at);
            }
        }
    }
}
