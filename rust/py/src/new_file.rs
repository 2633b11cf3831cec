//! New files that get their names when complete.

use std::ffi::OsString;
use std::path::PathBuf;

use mnemic_core::system::new_file::{self, Existing, NewFile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::system_error;

#[doc = stub!("NewFile")]
#[pyclass(name = "NewFile", module = "mnemic._core")]
pub(crate) struct PyNewFile {
    place: PathBuf,
    file: Option<NewFile>,
}

#[pymethods]
impl PyNewFile {
    #[new]
    #[pyo3(signature = (path, /, *, overwrite = false, named = false))]
    fn new(py: Python<'_>, path: PathBuf, overwrite: bool, named: bool) -> PyResult<Self> {
        let existing = if overwrite { Existing::Replaced } else { Existing::Kept };
        let begin = if named { NewFile::named } else { NewFile::begin };
        let begun = py.detach(|| begin(&path, existing));
        let file = begun.map_err(|error| system_error(error, Some(&path)))?;
        Ok(Self { place: path, file: Some(file) })
    }

    #[doc = stub!("NewFile.part")]
    #[getter]
    fn part(&self) -> Option<OsString> {
        Some(self.file.as_ref()?.part()?.as_os_str().to_owned())
    }

    #[doc = stub!("NewFile.fileno")]
    fn fileno(&self) -> PyResult<i32> {
        let file = self.file.as_ref().ok_or_else(closed)?.file();
        #[cfg(unix)]
        return Ok(std::os::fd::AsRawFd::as_raw_fd(file));
        #[cfg(not(unix))]
        {
            let _ = file;
            Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
        }
    }

    #[doc = stub!("NewFile.commit")]
    fn commit(&mut self, py: Python<'_>) -> PyResult<()> {
        let file = self.file.take().ok_or_else(closed)?;
        py.detach(|| file.commit()).map_err(|error| system_error(error, Some(&self.place)))
    }

    #[doc = stub!("NewFile.discard")]
    fn discard(&mut self, py: Python<'_>) {
        let file = self.file.take();
        py.detach(|| drop(file));
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the file was committed or discarded")
}

#[doc = stub!("remove_part")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn remove_part(py: Python<'_>, path: PathBuf) {
    py.detach(|| new_file::remove_part(&path));
}

#[doc = stub!("remove_parts")]
#[pyfunction]
#[pyo3(signature = (folder, /))]
pub(crate) fn remove_parts(py: Python<'_>, folder: PathBuf) {
    py.detach(|| new_file::remove_parts(&folder));
}

#[doc = stub!("sync_folder")]
#[pyfunction]
#[pyo3(signature = (folder, /))]
pub(crate) fn sync_folder(py: Python<'_>, folder: PathBuf) -> PyResult<()> {
    let done = py.detach(|| new_file::sync_folder(&folder));
    done.map_err(|error| system_error(error, Some(&folder)))
}
