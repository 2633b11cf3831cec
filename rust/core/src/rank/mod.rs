//! The score of a memory: similarity, keyword match, static score, and their fusion.

pub(crate) mod bounded_ranking;
pub(crate) mod candidates;
pub(crate) mod components;
pub(crate) mod cosine_scale;
pub(crate) mod evidence;
pub(crate) mod fused_score;
pub mod interleaving;
pub(crate) mod keyword_match;
pub(crate) mod largest;
pub(crate) mod scoring_config;
mod session_terms;
pub(crate) mod signals;
pub(crate) mod similarity;
pub mod sort_key;
pub(crate) mod static_score;
pub(crate) mod why;
