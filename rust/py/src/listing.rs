//! Requests of lists as Python passes them.

use mnemic_core::columns::{Ask, ListOrder, Listing, PageStart};
use mnemic_core::filter::Filter;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::requests::{GivenScope, Member};

/// The fields of `mnemic.index.base.ListRequest`.
#[derive(FromPyObject)]
pub(crate) struct ListRequest<'py> {
    scope: GivenScope,
    now: i64,
    pub(crate) filters: Bound<'py, PyAny>,
    order: Member,
    after: Option<GivenStart>,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

/// Creation, id and user of the last memory of the page before.
type GivenStart = (i64, [u8; 16], Option<String>);

impl ListRequest<'_> {
    pub(crate) fn ask<'a>(&'a self, filter: &'a Filter) -> Ask<'a> {
        let scope = self.scope.scope();
        Ask { scope, filter: Some(filter), now: self.now, ..Ask::default() }
    }

    pub(crate) fn listing(&self) -> PyResult<Listing<'_>> {
        Ok(Listing {
            order: order_of(&self.order)?,
            after: self.after.as_ref().map(start_of),
            offset: self.offset,
            limit: self.limit,
        })
    }
}

fn start_of((created_at, id, user): &GivenStart) -> PageStart<'_> {
    PageStart { created_at: *created_at, id: *id, user: user.as_deref() }
}

fn order_of(order: &Member) -> PyResult<ListOrder> {
    match order.value.as_str() {
        "created_descending" => Ok(ListOrder::Newest),
        "created_ascending" => Ok(ListOrder::Oldest),
        "importance_descending" => Ok(ListOrder::Importance),
        "accessed_descending" => Ok(ListOrder::Accessed),
        "access_count_descending" => Ok(ListOrder::AccessCount),
        other => Err(PyValueError::new_err(format!("a list has no order {other:?}"))),
    }
}
