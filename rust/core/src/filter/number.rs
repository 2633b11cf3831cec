//! Integers and floats as numbers, compared without rounding either.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use super::{Operand, Order};

/// 2⁶³: the first float above every `i64`; its negative is the smallest `i64`.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// A number in the one form it has: whole where it is a whole number of 64 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Whole(i64),
    /// Neither a whole number of 64 bits nor NaN.
    Other(f64),
    /// A whole number of more than 64 bits that is no float: above this one, and below the next.
    /// Of two such numbers between the same floats neither is greater.
    After(f64),
}

impl Number {
    pub(crate) fn of(float: f64) -> Option<Self> {
        if float.is_nan() {
            None
        } else if is_whole(float) {
            Some(Self::Whole(float as i64))
        } else {
            Some(Self::Other(float))
        }
    }

    /// The `i64`s that stand in this order to the number.
    pub(crate) fn wholes(self, order: Order) -> RangeInclusive<i64> {
        let none = RangeInclusive::new(1, 0);
        let (min, max) = match self {
            Self::Whole(whole) => match order {
                Order::Above => (whole.checked_add(1), Some(i64::MAX)),
                Order::AtLeast => (Some(whole), Some(i64::MAX)),
                Order::Below => (Some(i64::MIN), whole.checked_sub(1)),
                Order::AtMost => (Some(i64::MIN), Some(whole)),
            },
            // Between two wholes, or beyond all of them: a cast saturates.
            Self::Other(float) | Self::After(float) => match order {
                Order::Above | Order::AtLeast if float < BEYOND => {
                    (Some(float.ceil() as i64), Some(i64::MAX))
                }
                Order::Below | Order::AtMost if float >= -BEYOND => {
                    (Some(i64::MIN), Some(float.floor() as i64))
                }
                _ => return none,
            },
        };
        min.zip(max).map_or(none, |(min, max)| min..=max)
    }

    /// The floats that stand in this order to the number, infinities included.
    pub(crate) fn floats(self, order: Order) -> RangeInclusive<f64> {
        let (below, above) = self.around();
        let is_exact = below.total_cmp(&above).is_eq();
        match order {
            // Nothing is beyond infinity.
            Order::Above if above == f64::INFINITY => RangeInclusive::new(1.0, 0.0),
            Order::Below if below == f64::NEG_INFINITY => RangeInclusive::new(1.0, 0.0),
            Order::Above if is_exact => above.next_up()..=f64::INFINITY,
            Order::Below if is_exact => f64::NEG_INFINITY..=below.next_down(),
            Order::Above | Order::AtLeast => above..=f64::INFINITY,
            Order::Below | Order::AtMost => f64::NEG_INFINITY..=below,
        }
    }

    /// The equal float, if there is one.
    pub(crate) fn float(self) -> Option<f64> {
        let (below, above) = self.around();
        below.total_cmp(&above).is_eq().then_some(below)
    }

    /// The largest float that is not above, and the smallest that is not below.
    fn around(self) -> (f64, f64) {
        let whole = match self {
            Self::Other(float) => return (float, float),
            Self::After(float) => return (float, float.next_up()),
            Self::Whole(whole) => whole,
        };
        let nearest = whole as f64;
        match Self::Whole(whole).cmp(&Self::rounded(nearest)) {
            Ordering::Equal => (nearest, nearest),
            Ordering::Less => (nearest.next_down(), nearest),
            Ordering::Greater => (nearest, nearest.next_up()),
        }
    }

    /// A float that is a rounded `i64`: whole, or 2⁶³.
    fn rounded(float: f64) -> Self {
        if is_whole(float) { Self::Whole(float as i64) } else { Self::Other(float) }
    }
}

fn is_whole(float: f64) -> bool {
    (-BEYOND..BEYOND).contains(&float) && float.fract() == 0.0
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Self::Whole(one), Self::Whole(other)) => one.cmp(&other),
            (Self::Other(one), Self::Other(other)) | (Self::After(one), Self::After(other)) => {
                one.total_cmp(&other)
            }
            (Self::After(one), Self::Other(other)) => after_to_other(one, other),
            (Self::Other(one), Self::After(other)) => after_to_other(other, one).reverse(),
            (Self::Whole(whole), Self::Other(float) | Self::After(float)) => {
                whole_to_other(whole, float)
            }
            (Self::Other(float) | Self::After(float), Self::Whole(whole)) => {
                whole_to_other(whole, float).reverse()
            }
        }
    }
}

fn whole_to_other(whole: i64, float: f64) -> Ordering {
    if float >= BEYOND || (float >= -BEYOND && whole <= float.floor() as i64) {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

fn after_to_other(after: f64, other: f64) -> Ordering {
    if after >= other { Ordering::Greater } else { Ordering::Less }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

/// The number that a value is.
pub(crate) fn number_of(value: &Operand) -> Option<Number> {
    match value {
        Operand::Int(whole) => Some(Number::Whole(*whole)),
        Operand::Float(float) => Number::of(*float),
        Operand::After(float) => Some(Number::After(*float)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A number as sign, integer part and fraction in units of 2⁻¹⁰⁷⁴: enough for every f64 below
    /// 2⁶⁴; greater ones are cut to ±2¹⁰⁰, which keeps their order to all i64.
    fn exact(float: f64) -> (i128, f64) {
        let cut = float.clamp(-(2_f64.powi(100)), 2_f64.powi(100));
        (cut.floor() as i128, cut - cut.floor())
    }

    fn compare(whole: i64, float: f64) -> Ordering {
        let (floor, fraction) = exact(float);
        match i128::from(whole).cmp(&floor) {
            Ordering::Equal if fraction > 0.0 => Ordering::Less,
            order => order,
        }
    }

    fn wholes() -> impl Strategy<Value = i64> {
        prop_oneof![
            any::<i64>(),
            -5_i64..5,
            (-3_i64..=3).prop_map(|near| (1 << 53) + near),
            (-3_i64..=3).prop_map(|near| -(1 << 53) + near),
            (0_i64..3).prop_map(|near| i64::MAX - near),
            (0_i64..3).prop_map(|near| i64::MIN + near),
        ]
    }

    fn floats() -> impl Strategy<Value = f64> {
        let near = || wholes().prop_map(|whole| whole as f64);
        let beside = (near(), any::<bool>());
        prop_oneof![
            any::<f64>().prop_filter("a number", |float| !float.is_nan()),
            near(),
            beside.prop_map(|(float, up)| if up { float.next_up() } else { float.next_down() }),
            prop::sample::select(vec![
                0.0,
                -0.0,
                0.5,
                -0.5,
                1e300,
                -1e300,
                5e-324,
                -5e-324,
                f64::INFINITY,
                f64::NEG_INFINITY,
                BEYOND,
                -BEYOND,
            ]),
        ]
    }

    fn holds(ordering: Ordering, order: Order) -> bool {
        match order {
            Order::Above => ordering.is_gt(),
            Order::AtLeast => ordering.is_ge(),
            Order::Below => ordering.is_lt(),
            Order::AtMost => ordering.is_le(),
        }
    }

    const ORDERS: [Order; 4] = [Order::Above, Order::AtLeast, Order::Below, Order::AtMost];

    proptest! {
        #[test]
        fn wholes_and_floats_compare_without_rounding(whole in wholes(), float in floats()) {
            let (number, wanted) = (Number::of(float).expect("not NaN"), compare(whole, float));
            prop_assert_eq!(Number::Whole(whole).cmp(&number), wanted);
            prop_assert_eq!(number.cmp(&Number::Whole(whole)), wanted.reverse());
            prop_assert_eq!(number.float(), Some(float + 0.0));
            let equal = Number::Whole(whole).float();
            prop_assert!(equal.is_none_or(|equal| compare(whole, equal).is_eq()));
            prop_assert!(wanted.is_ne() || equal == Some(float));
            for order in ORDERS {
                let ranges = (number.wholes(order), Number::Whole(whole).floats(order));
                prop_assert_eq!(ranges.0.contains(&whole), holds(wanted, order));
                prop_assert_eq!(ranges.1.contains(&float), holds(wanted.reverse(), order));
            }
        }

        #[test]
        fn floats_compare_to_floats_and_wholes_to_wholes(
            floats in (floats(), floats()), wholes in (wholes(), wholes())
        ) {
            let number = Number::of(floats.1).expect("not NaN");
            let wanted = floats.0.partial_cmp(&floats.1).expect("not NaN");
            prop_assert_eq!(Number::of(floats.0).expect("not NaN").cmp(&number), wanted);
            for order in ORDERS {
                prop_assert_eq!(number.floats(order).contains(&floats.0), holds(wanted, order));
                let range = Number::Whole(wholes.1).wholes(order);
                prop_assert_eq!(range.contains(&wholes.0), holds(wholes.0.cmp(&wholes.1), order));
            }
        }
    }

    #[test]
    fn a_number_between_two_floats_is_neither() {
        for float in [2_f64.powi(64), -(2_f64.powi(64)), 1e300, f64::MAX, f64::NEG_INFINITY] {
            let (after, next) = (Number::After(float), float.next_up());
            assert_eq!((after.float(), after.cmp(&after)), (None, Ordering::Equal));
            for (one, wanted) in [(float, Ordering::Less), (next, Ordering::Greater)] {
                assert_eq!(Number::Other(one).cmp(&after), wanted);
                assert_eq!(after.cmp(&Number::Other(one)), wanted.reverse());
                if one.is_finite() {
                    for order in ORDERS {
                        assert_eq!(after.floats(order).contains(&one), holds(wanted, order));
                    }
                }
            }
            for whole in [i64::MIN, 0, i64::MAX] {
                let wanted = if float > 0.0 { Ordering::Less } else { Ordering::Greater };
                assert_eq!(Number::Whole(whole).cmp(&after), wanted);
                for order in ORDERS {
                    assert_eq!(after.wholes(order).contains(&whole), holds(wanted, order));
                }
            }
        }
    }

    #[test]
    fn nan_is_no_number() {
        assert!(Number::of(f64::NAN).is_none());
    }
}
