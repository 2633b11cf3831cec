//! Memories in the order of a list, which no score decides.

use std::cmp::{Ordering, Reverse};

use crate::collections::cow_vec::BLOCK_VALUES;

use super::select::Selected;
use super::{Access, ColumnBlock, Columns};

/// The sort key of a list, the largest first but for [`ListOrder::Oldest`]. Ties go to the newest,
/// then to the smallest id, then to the first user by name, no user before all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListOrder {
    /// Creation.
    #[default]
    Newest,
    /// Creation, the oldest first.
    Oldest,
    /// Importance.
    Importance,
    /// The last access; memories without one come last.
    Accessed,
    /// Access count.
    AccessCount,
}

/// The last memory of the page before; only newer memories, or equally new ones with a smaller id
/// or user, are before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageStart<'text> {
    /// Creation.
    pub created_at: i64,
    /// The UUID.
    pub id: [u8; 16],
    /// The user.
    pub user: Option<&'text str>,
}

/// Order and cut of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listing<'text> {
    /// The order.
    pub order: ListOrder,
    /// Only memories that come after this one in the order [`ListOrder::Newest`].
    pub after: Option<PageStart<'text>>,
    /// How many of the first memories are skipped.
    pub offset: usize,
    /// How many memories are returned at most.
    pub limit: usize,
}

impl Columns {
    /// The selected memories in the order of a list, with their accesses.
    pub fn listed(&self, selected: &Selected, listing: &Listing<'_>) -> Vec<Access> {
        let mut places = self.places(selected, listing);
        let end = listing.offset.saturating_add(listing.limit).min(places.len());
        if let Some(at) = end.checked_sub(1) {
            let mut keys: Vec<i64> = places.iter().map(|place| place.0).collect();
            // By keys alone, which is faster than with ties.
            let (_, last, _) = keys.select_nth_unstable_by_key(at, |key| Reverse(*key));
            let last = *last;
            places.retain(|place| place.0 >= last);
        }
        places.sort_unstable_by(|one, other| {
            let by_key = other.0.cmp(&one.0);
            let by_tie = || self.tie_of(one.1).cmp(&self.tie_of(other.1));
            by_key.then_with(by_tie).then(one.1.cmp(&other.1))
        });
        places.truncate(end);
        let access = |docid| {
            let (last, count) = self.access_of(docid)?;
            Some(Access { row: self.row_of(docid)?, last, count })
        };
        let shown = places.get(listing.offset..).unwrap_or_default();
        shown.iter().filter_map(|(_, docid)| access(*docid)).collect()
    }

    /// Sort keys, larger first, and docids of the selected memories after the start of the page.
    fn places(&self, selected: &Selected, listing: &Listing<'_>) -> Vec<(i64, u32)> {
        let mut places = Vec::with_capacity(selected.len());
        let mut docids = Vec::new();
        for (at, (bitmap, block)) in selected.bitmaps.iter().zip(self.blocks.iter()).enumerate() {
            docids.clear();
            bitmap.list(0, &mut docids);
            let first = (at * BLOCK_VALUES) as u32;
            let keys = Keys::of(block, listing.order);
            places.extend(docids.iter().map(|at| (keys.key(*at as usize), first + at)));
        }
        if let Some(start) = &listing.after {
            places.retain(|(_, docid)| self.is_after(*docid, start));
        }
        places
    }

    fn is_after(&self, docid: u32, start: &PageStart<'_>) -> bool {
        let tie = self.tie_of(docid);
        let by_time = start.created_at.cmp(&tie.created_at);
        match by_time.then(tie.id.cmp(&start.id)) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => tie.user_name().as_deref() > start.user,
        }
    }
}

/// The sort keys of a block.
struct Keys<'block> {
    order: ListOrder,
    wholes: &'block [i64],
    importances: &'block [f64],
}

impl<'block> Keys<'block> {
    fn of(block: &'block ColumnBlock, order: ListOrder) -> Self {
        let ColumnBlock { attributes, accesses, .. } = block;
        let wholes = match order {
            ListOrder::Newest | ListOrder::Oldest | ListOrder::Importance => &attributes.created_at,
            ListOrder::Accessed => &accesses.last_accessed_at,
            ListOrder::AccessCount => &accesses.access_count,
        };
        let importances = &attributes.importance;
        Self { order, wholes, importances }
    }

    fn key(&self, at: usize) -> i64 {
        match self.order {
            ListOrder::Oldest => -self.wholes[at],
            ListOrder::Importance => ordered_bits(self.importances[at]),
            _ => self.wholes[at],
        }
    }
}

/// An integer for each number from 0 to 1, in their order; minus zero is zero.
fn ordered_bits(importance: f64) -> i64 {
    (importance + 0.0).to_bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::columns::{Ask, Record, Scope, Users};

    const USERS: [Option<&str>; 3] = [None, Some("alice"), Some("zoe")];
    const ORDERS: [ListOrder; 5] = [
        ListOrder::Newest,
        ListOrder::Oldest,
        ListOrder::Importance,
        ListOrder::Accessed,
        ListOrder::AccessCount,
    ];

    type Drawn = (i64, u8, usize, u8, Option<i64>, i64);

    fn record((row, drawn): (i64, &Drawn)) -> Record {
        let (created_at, id, user, importance, last_accessed_at, access_count) = *drawn;
        Record {
            row,
            created_at,
            id: [id; 16],
            user: USERS[user].map(str::to_owned),
            importance: f64::from(importance) / 3.0,
            last_accessed_at,
            access_count,
            ..Record::default()
        }
    }

    /// A page of a list by sorting all of it.
    fn naive(records: &[Record], listing: &Listing<'_>) -> Vec<Access> {
        let place = |one: &Record| (Reverse(one.created_at), one.id, one.user.clone());
        let mut sorted: Vec<&Record> = records.iter().collect();
        sorted.sort_by(|one, other| {
            let by_key = match listing.order {
                ListOrder::Newest => other.created_at.cmp(&one.created_at),
                ListOrder::Oldest => one.created_at.cmp(&other.created_at),
                ListOrder::Importance => other.importance.total_cmp(&one.importance),
                ListOrder::Accessed => other.last_accessed_at.cmp(&one.last_accessed_at),
                ListOrder::AccessCount => other.access_count.cmp(&one.access_count),
            };
            by_key.then_with(|| place(one).cmp(&place(other)))
        });
        let is_after = |one: &&Record| {
            listing.after.is_none_or(|start| {
                let user = start.user.map(str::to_owned);
                place(one) > (Reverse(start.created_at), start.id, user)
            })
        };
        let access = |record: &Record| Access {
            row: record.row,
            last: record.last_accessed_at,
            count: record.access_count,
        };
        let listed = sorted.into_iter().filter(is_after).map(access);
        listed.skip(listing.offset).take(listing.limit).collect()
    }

    fn drawn() -> impl Strategy<Value = Drawn> {
        let last = prop::option::of(-2_i64..3);
        (-3_i64..3, 0_u8..4, 0_usize..3, 0_u8..4, last, 0_i64..3)
    }

    proptest! {
        #[test]
        fn a_list_is_the_head_of_all_memories_sorted(
            drawn in prop::collection::vec(drawn(), 0..60),
            order in prop::sample::select(&ORDERS),
            after in prop::option::of((-3_i64..3, 0_u8..4, 0_usize..4)),
            offset in 0_usize..8,
            limit in 0_usize..70,
        ) {
            let records: Vec<Record> = (1..).zip(&drawn).map(record).collect();
            let mut columns = Columns::new();
            for record in &records {
                columns.push(record);
            }
            let after = after.map(|(created_at, id, user)| PageStart {
                created_at,
                id: [id; 16],
                user: USERS.get(user).copied().unwrap_or(Some("nobody's name")),
            });
            let listing = Listing { order, after, offset, limit };
            let scope = Scope { user: Users::All, ..Scope::default() };
            let selected = columns.select(&Ask { scope, ..Ask::default() });
            prop_assert_eq!(columns.listed(&selected, &listing), naive(&records, &listing));
        }
    }

    #[test]
    fn an_offset_beyond_all_memories_lists_none() {
        let mut columns = Columns::new();
        columns.push(&Record::default());
        let selected = columns.select(&Ask::default());
        let listing = Listing { offset: usize::MAX, limit: usize::MAX, ..Listing::default() };
        assert!(columns.listed(&selected, &listing).is_empty());
    }
}
