//! Exact nearest-neighbour search: a coarse scan, a cascade of bounds, exact scores of few rows.

pub(crate) mod cascade;
pub(crate) mod coarse_scan;
pub(crate) mod count;
pub(crate) mod docid_set;
pub(crate) mod formula;
pub(crate) mod prepared_query;
pub(crate) mod prior;
pub(crate) mod scan;
pub(crate) mod selection;
pub(crate) mod top_k;
