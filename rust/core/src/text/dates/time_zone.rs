//! The clock of a place, told by its offsets from UTC.

use super::MICROSECONDS_PER_DAY;

/// A time zone: from which moment on its clocks differ from UTC, and by how much.
///
/// A moment is in µs since 1970 UTC; a local time is in µs too, as if its clock showed UTC. Without
/// changes it is UTC.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeZone<'call> {
    changes: &'call [[i64; 2]],
}

impl<'call> TimeZone<'call> {
    /// The zone whose offset, second of each pair, changes at the moments that come first in them,
    /// in ascending order; before all of them it is that of the first.
    ///
    /// # Examples
    /// ```
    /// use mnemic_core::text::TimeZone;
    ///
    /// let hour = 3_600_000_000;
    /// let changes = [[0, hour], [100 * hour, 2 * hour]];
    /// let zone = TimeZone::new(&changes);
    /// assert_eq!((zone.local(99 * hour), zone.local(100 * hour)), (100 * hour, 102 * hour));
    /// assert_eq!(zone.moment(102 * hour), 100 * hour);
    /// ```
    pub fn new(changes: &'call [[i64; 2]]) -> Self {
        Self { changes }
    }

    /// What its clocks show at a moment.
    pub fn local(&self, moment: i64) -> i64 {
        moment.saturating_add(self.offset(moment))
    }

    /// The first moment at which its clocks show a local time or, if they skip it, a later one.
    pub fn moment(&self, local: i64) -> i64 {
        let offsets = [-1, 1].map(|side| {
            // No change is as near to another, and no offset as long, as a day.
            self.offset(local.saturating_add(side * MICROSECONDS_PER_DAY))
        });
        let moments = offsets.map(|offset| local.saturating_sub(offset));
        let shown = moments.into_iter().find(|moment| self.local(*moment) == local);
        shown.unwrap_or_else(|| {
            let next = self.next(moments[0]);
            self.changes.get(next.saturating_sub(1)).map_or(moments[0], |change| change[0])
        })
    }

    fn offset(&self, moment: i64) -> i64 {
        let place = self.next(moment).saturating_sub(1);
        self.changes.get(place).map_or(0, |change| change[1])
    }

    /// The place of the first change after a moment.
    fn next(&self, moment: i64) -> usize {
        self.changes.partition_point(|change| change[0] <= moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn without_changes_it_is_utc() {
        let zone = TimeZone::default();
        assert_eq!((zone.local(5), zone.moment(5)), (5, 5));
    }

    #[test]
    fn a_local_time_that_is_skipped_is_the_moment_of_the_change() {
        let zone = TimeZone::new(&[[0, HOUR], [100 * HOUR, 2 * HOUR]]);
        for (local, moment) in [(100, 99), (102, 100), (103, 101)] {
            assert_eq!(zone.moment(local * HOUR), moment * HOUR);
        }
        assert_eq!(zone.moment(101 * HOUR + 5), 100 * HOUR);
    }

    #[test]
    fn a_local_time_that_comes_twice_is_the_first_of_both() {
        let zone = TimeZone::new(&[[0, 2 * HOUR], [100 * HOUR, HOUR]]);
        for (local, moment) in [(100, 98), (101, 99), (102, 101)] {
            assert_eq!(zone.moment(local * HOUR), moment * HOUR);
        }
    }

    #[test]
    fn offsets_beyond_all_reason_do_not_overflow() {
        let zone = TimeZone::new(&[[i64::MIN, i64::MAX], [0, i64::MIN]]);
        for time in [i64::MIN, -1, 0, i64::MAX] {
            let _ = (zone.local(time), zone.moment(time));
        }
    }
}
