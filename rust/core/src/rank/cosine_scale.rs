//! The scale of an embedder's cosines.
//!
//! What cosine two texts have that have nothing to do with each other depends on the model, and so
//! does how far cosines spread. Other parts of a score are weighed beside cosines of the default
//! embedder, and a fifth of their spread would be outweighed by each of them.

/// Where the mean cosine of two memories is put at most, and the least standard deviation that
/// cosines are given: among memories of nine sets the default embedder's have .04 to .39 and .10 to
/// .15.
const MEAN: f64 = 0.12;
const SPREAD: f64 = 0.12;

/// Memories that are all alike say nothing of how far other texts spread.
const MAX_STRETCH: f64 = 8.0;

/// From here on stretched cosines grow in a straight line to 1, so that no two become the same.
const KNEE: f64 = 0.7;

/// How similar two memories are that have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CosineScale {
    /// The mean cosine of two memories.
    pub mean: f64,
    /// The standard deviation of these cosines.
    pub spread: f64,
    /// The cosine below which a text and a memory are most likely unrelated: less than the mean, and
    /// still less among few memories.
    pub floor: f64,
    /// The cosine that even unrelated texts reach: if no memory does, memories are all alike, and the
    /// mean says nothing of other texts.
    pub lower_limit: f64,
}

/// Two straight lines, the lower of which has the place of a cosine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rescaling {
    mean: f64,
    rescaled_mean: f64,
    stretch: f64,
    stretch_to_1: f64,
}

impl CosineScale {
    /// Where cosines are put on this scale.
    pub(crate) fn rescaling(self) -> Rescaling {
        let stretch = (SPREAD / self.spread).clamp(1.0, MAX_STRETCH);
        let rescaled_mean = self.mean.min(MEAN);
        let reaches_1 = rescaled_mean + (1.0 - self.mean) * stretch > 1.0;
        let knee = self.mean + (KNEE - rescaled_mean) / stretch;
        let stretch_to_1 = if reaches_1 { (1.0 - KNEE) / (1.0 - knee) } else { 0.0 };
        Rescaling { mean: self.mean, rescaled_mean, stretch, stretch_to_1 }
    }
}

impl Rescaling {
    /// The place of a cosine or of an upper bound of one; it grows with the cosine.
    pub(crate) fn of(&self, cosine: f64) -> f64 {
        let stretched = self.rescaled_mean + (cosine - self.mean) * self.stretch;
        stretched.min(1.0 - (1.0 - cosine).max(0.0) * self.stretch_to_1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rescaling(mean: f64, spread: f64) -> Rescaling {
        CosineScale { mean, spread, floor: mean, lower_limit: mean }.rescaling()
    }

    proptest! {
        #[test]
        fn places_grow_with_cosines_and_are_at_most_1(
            mean in -1.0..0.99999_f64,
            spread in 0.0..1.0_f64,
            one in -1.0..1.0_f64,
            other in -1.0..1.0_f64,
        ) {
            let rescaling = rescaling(mean, spread);
            let (less, more) = (one.min(other), one.max(other));
            prop_assert!(rescaling.of(less) <= rescaling.of(more));
            prop_assert!(rescaling.of(more) <= 1.0);
            prop_assert!(rescaling.of(f64::INFINITY) <= 1.0);
            prop_assert!(more - less < 1e-6 || rescaling.of(less) < rescaling.of(more));
        }
    }

    #[test]
    fn cosines_that_spread_enough_stay_as_far_from_each_other_as_they_are() {
        let rescaling = rescaling(0.3, 0.15);
        let differs = (rescaling.of(0.6) - rescaling.of(0.4) - 0.2).abs();
        assert!(differs < 1e-12 && (rescaling.of(0.3) - MEAN).abs() < 1e-12);
    }

    #[test]
    fn squeezed_cosines_are_put_where_those_of_the_default_embedder_lie() {
        let rescaling = rescaling(0.7 + 0.2 * MEAN, 0.2 * SPREAD);
        let differs = |cosine: f64| (rescaling.of(0.7 + 0.2 * cosine) - cosine).abs();
        assert!(differs(MEAN) < 1e-9 && differs(0.5) < 1e-9);
        assert!((rescaling.of(1.0) - 1.0).abs() < 1e-12);
    }
}
