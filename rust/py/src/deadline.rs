//! Deadlines as Python gives them.

use std::time::{Duration, Instant};

use mnemic_core::deadline::Deadline;
use pyo3::intern;
use pyo3::prelude::*;

/// The deadline at a moment of `time.monotonic()`; none is never.
pub(crate) fn deadline_at(py: Python<'_>, moment: Option<f64>) -> PyResult<Deadline> {
    let Some(moment) = moment else { return Ok(Deadline::default()) };
    let time = py.import(intern!(py, "time"))?;
    let now: f64 = time.call_method0(intern!(py, "monotonic"))?.extract()?;
    let left = Duration::try_from_secs_f64((moment - now).max(0.0)).unwrap_or(Duration::MAX);
    Ok(Instant::now().checked_add(left).map_or_else(Deadline::default, Deadline::at))
}
