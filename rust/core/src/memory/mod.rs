//! The state of all memories: columns, keywords, speakers and links.

mod compaction;
pub mod links;
pub(crate) mod naming;
#[cfg(test)]
mod naming_tests;
pub mod neighbours;
pub(crate) mod speakers;
pub(crate) mod state;
pub(crate) mod stored;
pub(crate) mod uncovered;
