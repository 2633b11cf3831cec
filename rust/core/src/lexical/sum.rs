//! Sums that do not depend on the order of addition.

/// A sum that is the same in every order: summands are rounded to a multiple of 2⁻²⁴, and float64
/// adds such numbers without error while their sum stays under 2²⁸.
///
/// So scores are the same to the byte whichever way they are computed, memory by memory or term by
/// term, and whatever numbers the terms were given.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum(f64);

impl Sum {
    /// Adding this much and taking it away leaves a multiple of 2⁻²⁴.
    const ROUNDING: f64 = 1.5 * (1_u64 << 28) as f64;

    pub(super) const ZERO: Self = Self(0.0);

    pub(super) fn add(&mut self, value: f32) {
        self.0 += (f64::from(value) + Self::ROUNDING) - Self::ROUNDING;
    }

    /// This sum and another, exactly.
    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    pub(super) fn value(self) -> f32 {
        self.0 as f32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(values: &[f32]) -> f32 {
        let mut sum = Sum::default();
        for &value in values {
            sum.add(value);
        }
        sum.value()
    }

    proptest! {
        #[test]
        fn a_sum_is_the_same_in_every_order(
            (values, shuffled) in prop::collection::vec(0.0_f32..300.0, 0..200)
                .prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle())),
        ) {
            prop_assert_eq!(sum(&values).to_bits(), sum(&shuffled).to_bits());
            let exact: f64 = values.iter().copied().map(f64::from).sum();
            prop_assert!((f64::from(sum(&values)) - exact).abs() <= 1e-5 + exact * 1e-7);
        }
    }
}
