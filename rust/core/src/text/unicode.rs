//! Unicode data that several kinds of text work read.

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};

pub(super) const CASES: CaseMapperBorrowed<'static> = CaseMapper::new();
pub(super) const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();
