//! Static signals of a memory: the curves of time, access and importance.

/// Microseconds in a day.
pub(crate) const DAY: f64 = 86_400e6;

/// The access score is 1 at 999 accesses.
const ACCESSES_AT_ONE: f64 = 1000.0;

/// How a memory's age becomes a number from 0 to 1, 1 for the newest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Recency {
    /// Falls in a straight line from its creation to zero after so many days.
    CreatedLinear {
        /// Days until zero.
        days: f64,
    },
    /// Halves every so many days after its creation.
    CreatedHalfLife {
        /// Days until a half.
        days: f64,
    },
    /// Halves every so many days after its last access, or its creation if there was none.
    AccessedHalfLife {
        /// Days until a half.
        days: f64,
    },
    /// 1 for the newest of the candidates, 0 for the oldest, with even steps between.
    NewestRank,
}

/// Weights of salience, a query-independent score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Salience {
    /// Of the last access.
    pub recency: f64,
    /// Of how often it was read.
    pub frequency: f64,
    /// Of its importance.
    pub importance: f64,
    /// Days in which recency halves.
    pub half_life_days: f64,
    /// How many accesses count as a frequency of 1.
    pub frequency_max_count: f64,
}

/// A memory's salience and its parts, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SalienceParts {
    /// Halves every half-life after the last access, or after the creation where there was none.
    pub recency: f64,
    /// Logarithm of the accesses.
    pub frequency: f64,
    /// Weighted mean of recency, frequency and importance, 0 where all weights are.
    pub mean: f64,
}

/// The attributes of one memory behind its static score, times in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signals {
    pub(crate) created_at: i64,
    pub(crate) last_accessed_at: Option<i64>,
    pub(crate) access_count: i64,
    pub(crate) importance: f64,
}

impl Recency {
    /// The recency of one memory; for [`Recency::NewestRank`] see [`newest_ranks`].
    pub(crate) fn of(self, signals: &Signals, now: i64) -> f64 {
        match self {
            Self::NewestRank => 0.0,
            Self::CreatedLinear { days } => (1.0 - age(signals.created_at, now) / days).max(0.0),
            Self::CreatedHalfLife { days } => halved(age(signals.created_at, now), days),
            Self::AccessedHalfLife { days } => halved(age_of_access(signals, now), days),
        }
    }
}

/// Upper bounds of recencies; those of a straight line need a quarter of the time of its values.
pub(crate) struct RecencyUpper {
    recency: Recency,
    /// The loss in a microsecond, if it is a line.
    slope: f64,
}

/// More than the error of times in float64 and of a product.
const OFF_THE_LINE: f64 = 1e-9;

impl RecencyUpper {
    pub(crate) fn new(recency: Recency) -> Self {
        let slope = match recency {
            Recency::CreatedLinear { days } => 1.0 / (days * DAY),
            _ => 0.0,
        };
        Self { recency, slope }
    }

    /// An upper bound of the recency of one memory.
    pub(crate) fn of(&self, signals: &Signals, now: i64) -> f64 {
        let Recency::CreatedLinear { .. } = self.recency else {
            return self.recency.of(signals, now);
        };
        let age = now as f64 - signals.created_at as f64;
        (1.0 - age * self.slope).clamp(0.0, 1.0) + OFF_THE_LINE
    }
}

impl Salience {
    /// The weighted mean of recency, frequency and importance, 0 where all weights are.
    pub(crate) fn of(self, signals: &Signals, now: i64) -> f64 {
        let total = self.recency + self.frequency + self.importance;
        if total == 0.0 {
            return 0.0;
        }
        let recency = halved(age_of_access(signals, now), self.half_life_days);
        let sum = self.recency * recency
            + self.frequency * self.frequency_of(signals.access_count)
            + self.importance * signals.importance;
        sum / total
    }

    /// The salience of one memory in parts, as memories are ranked by it; times in microseconds.
    #[must_use]
    pub fn parts(
        self,
        created_at: i64,
        last_accessed_at: Option<i64>,
        access_count: i64,
        importance: f64,
        now: i64,
    ) -> SalienceParts {
        let signals = Signals { created_at, last_accessed_at, access_count, importance };
        SalienceParts {
            recency: halved(age_of_access(&signals, now), self.half_life_days),
            frequency: self.frequency_of(access_count),
            mean: self.of(&signals, now),
        }
    }

    /// An upper bound of the salience, faster to compute.
    pub(crate) fn upper(&self, signals: &Signals, now: i64, halving: &Halving) -> f64 {
        let total = self.recency + self.frequency + self.importance;
        if total == 0.0 {
            return 0.0;
        }
        let last = signals.last_accessed_at.unwrap_or(signals.created_at);
        let sum = self.recency * halving.upper(now.saturating_sub(last))
            + self.frequency * self.frequency_of(signals.access_count)
            + self.importance * signals.importance;
        sum / total * ABOVE
    }

    /// `ln(n + 1) / ln(frequency_max_count + 1)`, at most 1.
    pub(crate) fn frequency_of(&self, count: i64) -> f64 {
        logarithmic(count, self.frequency_max_count + 1.0)
    }
}

/// More than the rounding of a few operations on numbers from 0 to 1.
const ABOVE: f64 = 1.0 + 1e-12;

/// Steps of a [`Halving`] in each half-life, and half-lives until all ages count alike.
const STEPS: usize = 16;
const HALF_LIVES: usize = 64;

/// Upper bounds of exponential decay, by steps of age: a power takes as long as the rest of a
/// score.
pub(crate) struct Halving {
    steps_a_microsecond: f64,
    at_step: Vec<f64>,
}

impl Halving {
    /// Decay with this half-life in days.
    pub(crate) fn new(days: f64) -> Self {
        let at = |step: usize| (-(step as f64) / STEPS as f64).exp2() * ABOVE;
        Self {
            steps_a_microsecond: STEPS as f64 / (days * DAY) / ABOVE,
            at_step: (0..=STEPS * HALF_LIVES).map(at).collect(),
        }
    }

    /// An upper bound of the rest after so many microseconds.
    #[expect(clippy::cast_sign_loss, reason = "no age is negative here")]
    fn upper(&self, age: i64) -> f64 {
        let step = (age.max(0) as f64 * self.steps_a_microsecond) as usize;
        self.at_step[step.min(STEPS * HALF_LIVES)]
    }
}

/// Days in which nearness to a range falls to 1/e, and after which it counts as nothing.
const NEAR_DAYS: f64 = 7.0;
const FAR_DAYS: f64 = 70.0;

/// e^(−days / 7) between a moment and a range of them, its end left out; 1 inside alone, so that a
/// nearness shows whether the moment is inside.
pub(crate) fn nearness((start, end): (i64, i64), moment: i64) -> f32 {
    let gap = start.saturating_sub(moment).max(moment.saturating_sub(end - 1)).max(0);
    let days = gap as f64 / DAY;
    match gap {
        0 => 1.0,
        _ if days > FAR_DAYS => 0.0,
        _ => ((-days / NEAR_DAYS).exp() as f32).min(1.0_f32.next_down()),
    }
}

/// Ranks from 1 for the newest down to 0 for the oldest; memories of one time share the better one.
pub(crate) fn newest_ranks(times: &[i64]) -> Vec<f64> {
    let mut newest_first: Vec<(i64, u32)> = times.iter().copied().zip(0..).collect();
    newest_first.sort_unstable_by_key(|(time, _)| std::cmp::Reverse(*time));
    let last = (times.len().max(2) - 1) as f64;
    let mut ranks = vec![0.0; times.len()];
    let mut place = 0;
    for (at, (time, ordinal)) in newest_first.iter().enumerate() {
        if at > 0 && *time != newest_first[at - 1].0 {
            place = at;
        }
        ranks[*ordinal as usize] = 1.0 - place as f64 / last;
    }
    ranks
}

/// min(1, log₁₀(n + 1) / 3).
pub(crate) fn access(count: i64) -> f64 {
    logarithmic(count, ACCESSES_AT_ONE)
}

fn logarithmic(count: i64, at_one: f64) -> f64 {
    if count <= 0 {
        return 0.0; // most memories, and a logarithm takes as long as all else
    }
    ((count as f64).ln_1p() / at_one.ln()).min(1.0)
}

pub(crate) fn age_of_access(signals: &Signals, now: i64) -> f64 {
    age(signals.last_accessed_at.unwrap_or(signals.created_at), now)
}

/// Days from a moment to now; future timestamps count as age 0.
fn age(moment: i64, now: i64) -> f64 {
    (now.saturating_sub(moment) as f64 / DAY).max(0.0)
}

pub(crate) fn halved(age: f64, days: f64) -> f64 {
    (-age / days).exp2()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    fn signals(days_old: f64) -> Signals {
        let created_at = -(days_old * DAY) as i64;
        Signals { created_at, last_accessed_at: None, access_count: 0, importance: 0.5 }
    }

    #[test]
    fn a_line_over_a_year_ends_at_zero_and_starts_at_one() {
        let curve = Recency::CreatedLinear { days: 365.0 };
        assert_eq!(curve.of(&signals(0.0), 0), 1.0);
        assert!((curve.of(&signals(73.0), 0) - 0.8).abs() < 1e-12);
        assert_eq!(curve.of(&signals(366.0), 0), 0.0);
        assert_eq!(curve.of(&signals(-30.0), 0), 1.0, "the future is as new as now");
    }

    proptest::proptest! {
        #[test]
        fn a_bound_of_salience_is_above_it_and_near(
            age in -1e3..1e5_f64,
            days in 0.01..1e4_f64,
            count in 0_i64..300,
            importance in 0.0..=1.0_f64,
        ) {
            let salience = Salience {
                recency: 0.25, frequency: 0.2, importance: 0.25, half_life_days: days, frequency_max_count: 100.0
            };
            let signals = Signals { access_count: count, importance, ..signals(age) };
            let (of, upper) = (salience.of(&signals, 0), salience.upper(&signals, 0, &Halving::new(days)));
            proptest::prop_assert!(upper >= of && upper <= of + 0.02, "{upper} {of}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_bound_of_a_line_is_above_it_and_near(
            created_at in proptest::num::i64::ANY,
            moment in -10_000_000_000_000_000..10_000_000_000_000_000_i64,
            near in proptest::bool::ANY,
            age in -1e3..1e4_f64,
            days in 0.01..1e6_f64,
        ) {
            let created_at = if near { moment - (age * DAY) as i64 } else { created_at };
            let signals = Signals { created_at, ..signals(0.0) };
            let line = Recency::CreatedLinear { days };
            let (of, upper) = (line.of(&signals, moment), RecencyUpper::new(line).of(&signals, moment));
            proptest::prop_assert!(upper >= of && upper <= of + 1e-8, "{upper} {of}");
        }
    }

    #[test]
    fn a_half_life_halves() {
        let curve = Recency::CreatedHalfLife { days: 7.0 };
        assert_eq!(curve.of(&signals(7.0), 0), 0.5);
        assert_eq!(curve.of(&signals(14.0), 0), 0.25);
    }

    #[test]
    fn the_last_access_counts_where_there_was_one() {
        let curve = Recency::AccessedHalfLife { days: 7.0 };
        let read = Signals { last_accessed_at: Some(0), ..signals(100.0) };
        assert_eq!(curve.of(&read, 0), 1.0);
        assert!(curve.of(&signals(100.0), 0) < 1e-4);
    }

    #[test]
    fn nearness_is_one_inside_a_range_and_falls_beside_it() {
        let day = DAY as i64;
        assert_eq!(nearness((day, 2 * day), day), 1.0);
        assert_eq!(nearness((day, 2 * day), 2 * day - 1), 1.0);
        assert!((nearness((day, 2 * day), -6 * day) - (-1.0_f32).exp()).abs() < 1e-6);
        assert!((nearness((day, 2 * day), 9 * day) - (-1.0_f32).exp()).abs() < 1e-6);
        assert_eq!(nearness((0, day), 100 * day), 0.0);
        assert_eq!(nearness((i64::MIN, i64::MIN + 1), i64::MAX), 0.0);
    }

    #[test]
    fn a_microsecond_beside_a_range_is_not_inside() {
        let day = DAY as i64;
        for moment in [day - 1, 2 * day] {
            let near = nearness((day, 2 * day), moment);
            assert!(near < 1.0 && near > 0.999_999, "{near}");
        }
    }

    #[test]
    fn newest_ranks_fall_evenly_and_equal_times_share_one() {
        assert_eq!(newest_ranks(&[5, 9, 7, 9, 1]), [0.25, 1.0, 0.5, 1.0, 0.0]);
        assert_eq!(newest_ranks(&[3]), [1.0]);
        assert_eq!(newest_ranks(&[]), [0.0; 0]);
    }

    #[test]
    fn accesses_count_by_their_logarithm() {
        assert_eq!(access(0), 0.0);
        assert!((access(9) - 1.0 / 3.0).abs() < 1e-12);
        assert!((access(999) - 1.0).abs() < 1e-12);
        assert_eq!(access(1_000_000), 1.0);
        assert_eq!(access(-1), 0.0);
    }

    #[test]
    fn salience_is_a_mean_of_what_has_weight() {
        let only = |recency, frequency, importance| Salience {
            recency,
            frequency,
            importance,
            half_life_days: 7.0,
            frequency_max_count: 100.0,
        };
        let worn = Signals { access_count: 100, importance: 0.8, ..signals(7.0) };
        assert_eq!(only(1.0, 0.0, 0.0).of(&worn, 0), 0.5);
        assert!((only(0.0, 1.0, 0.0).of(&worn, 0) - 1.0).abs() < 1e-12);
        assert_eq!(only(0.0, 0.0, 2.0).of(&worn, 0), 0.8);
        let mean = only(0.25, 0.20, 0.25).of(&worn, 0);
        assert!((mean - (0.125 + 0.2 + 0.2) / 0.7).abs() < 1e-12);
        assert_eq!(only(0.0, 0.0, 0.0).of(&worn, 0), 0.0);
    }

    #[test]
    fn the_parts_of_a_salience_are_those_it_is_made_of() {
        let salience = Salience {
            recency: 0.25,
            frequency: 0.2,
            importance: 0.25,
            half_life_days: 7.0,
            frequency_max_count: 100.0,
        };
        let worn = Signals { access_count: 100, importance: 0.8, ..signals(7.0) };
        let parts = salience.parts(worn.created_at, worn.last_accessed_at, 100, 0.8, 0);
        assert_eq!(parts.recency, 0.5);
        assert!((parts.frequency - 1.0).abs() < 1e-12);
        assert_eq!(parts.mean, salience.of(&worn, 0));
    }
}
