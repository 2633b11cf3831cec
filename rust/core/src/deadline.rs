//! The deadline of a call, looked at between groups of rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[cfg(test)]
use std::sync::atomic::AtomicUsize;

use crate::Error;

/// Rows between two looks where a row takes nanoseconds, and where it takes microseconds.
pub(crate) const MANY_ROWS: usize = 8192;
pub(crate) const SOME_ROWS: usize = 128;

/// A deadline that never passes.
pub static NEVER: Deadline = Deadline(None);

/// The moment at which a call gives up; never by default. Copies are looked at as one: the threads of
/// a call stop together.
#[derive(Debug, Clone, Default)]
pub struct Deadline(Option<Arc<Watch>>);

#[derive(Debug)]
struct Watch {
    clock: Clock,
    has_passed: AtomicBool,
}

#[derive(Debug)]
enum Clock {
    Until(Instant),
    /// Looks that are left.
    #[cfg(test)]
    Looks(AtomicUsize),
}

impl Default for &Deadline {
    fn default() -> Self {
        &NEVER
    }
}

impl Deadline {
    /// A deadline at a moment.
    pub fn at(moment: Instant) -> Self {
        Self::of(Clock::Until(moment))
    }

    /// A deadline that passes after so many looks.
    #[cfg(test)]
    pub(crate) fn after_looks(looks: usize) -> Self {
        Self::of(Clock::Looks(AtomicUsize::new(looks)))
    }

    fn of(clock: Clock) -> Self {
        Self(Some(Arc::new(Watch { clock, has_passed: AtomicBool::new(false) })))
    }

    /// Look at the clock. Once past, it stays so.
    pub fn is_past(&self) -> bool {
        self.0.as_ref().is_some_and(|watch| watch.look())
    }

    /// Whether a look found it past, so that work may have been left out.
    pub fn has_passed(&self) -> bool {
        self.0.as_ref().is_some_and(|watch| watch.has_passed.load(Ordering::Relaxed))
    }

    /// Look at the clock before one row in some, and before others at whether a look found it past.
    pub(crate) fn is_past_at(&self, row: usize) -> bool {
        if row.is_multiple_of(SOME_ROWS) { self.is_past() } else { self.has_passed() }
    }

    /// Look at the clock.
    ///
    /// # Errors
    ///
    /// When the deadline has passed.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_past() { Err(Error::DeadlineExceeded) } else { Ok(()) }
    }
}

impl Watch {
    fn look(&self) -> bool {
        if self.has_passed.load(Ordering::Relaxed) {
            return true;
        }
        let is_past = match &self.clock {
            Clock::Until(moment) => Instant::now() >= *moment,
            #[cfg(test)]
            Clock::Looks(left) => {
                let one_less = |left: usize| left.checked_sub(1);
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err()
            }
        };
        if is_past {
            self.has_passed.store(true, Ordering::Relaxed);
        }
        is_past
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_deadline_passes_once_for_all_copies() {
        let deadline = Deadline::after_looks(2);
        let copy = deadline.clone();
        assert!(!deadline.is_past() && !copy.is_past() && !deadline.has_passed());
        assert!(copy.is_past() && deadline.has_passed() && deadline.is_past());
        assert_eq!(deadline.check(), Err(Error::DeadlineExceeded));
    }

    #[test]
    fn a_moment_passes_and_never_does_not() {
        let now = Instant::now();
        assert!(Deadline::at(now).is_past());
        assert!(!Deadline::at(now + Duration::from_secs(3600)).is_past());
        assert!(!NEVER.is_past() && !NEVER.has_passed());
    }
}
