//! The kernel's failures as the exceptions of `penstock.errors`, where the tree is written once.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::io;
use std::path::Path;

pyo3::import_exception!(penstock.errors, AttributesTooLargeError);
pyo3::import_exception!(penstock.errors, CorruptionError);
pyo3::import_exception!(penstock.errors, FlushError);
pyo3::import_exception!(penstock.errors, FormatVersionError);
pyo3::import_exception!(penstock.errors, LogPoisonedError);
pyo3::import_exception!(penstock.errors, PayloadTooLargeError);
pyo3::import_exception!(penstock.errors, QueueClosedError);
pyo3::import_exception!(penstock.errors, ReadOnlyError);
pyo3::import_exception!(penstock.errors, SegmentIOError);
pyo3::import_exception!(penstock.errors, WriterStalledError);

/// An OSError with its number; PyO3's own conversion would leave that out.
pub fn os_error(error: io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), error.to_string()))
}

/// A failed system call on a file of the queue.
pub fn io_error(path: &Path, error: &io::Error) -> PyErr {
    SegmentIOError::new_err((path.to_path_buf(), error.raw_os_error().unwrap_or(0)))
}

/// A segment file whose header cannot be believed.
pub fn bad_header(path: &Path, reason: &str) -> PyErr {
    let nowhere = None::<u64>;
    CorruptionError::new_err((path.to_path_buf(), 0, nowhere, reason.to_owned(), nowhere))
}
