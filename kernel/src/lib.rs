//! The kernel of Penstock: what must run once per message, and nothing that decides.
//!
//! The map, along the way of a message:
//! - `layout`: every byte constant; `header` and `frame`: the bytes of a segment
//! - `os`, `map`, `buffer`: Linux, mapped files and Python's buffers in safe coats
//! - `region`: one segment file, mapped; `find`: its index; `segment`: what Python does with it
//! - `control`: the pages that processes share; `bank`, `lock` and `wake`: what stands in them
//! - in: `appender` and `writer`, by `put` and `flush`; `mend` after a death, `keeper` ahead
//! - out: `tailer` by `cursor`, as a `message` or by `arrow` and `arrow_c`
//! - `errors`: the exceptions of `penstock.errors`
//!
//! The tests of a module stand in `…_tests`; `scratch` makes the files they need.

mod appender;
mod arrow;
mod arrow_c;
mod bank;
mod buffer;
mod control;
mod cursor;
mod errors;
mod find;
mod flush;
mod frame;
mod header;
mod keeper;
mod layout;
mod lock;
mod map;
mod mend;
mod message;
mod os;
mod place;
mod put;
mod region;
mod segment;
mod tailer;
mod wake;
mod writer;

#[cfg(test)]
mod bank_tests;
#[cfg(test)]
mod cursor_tests;
#[cfg(test)]
mod find_tests;
#[cfg(test)]
mod flush_tests;
#[cfg(test)]
mod frame_tests;
#[cfg(test)]
mod lock_tests;
#[cfg(test)]
mod mend_tests;
#[cfg(test)]
mod region_tests;
#[cfg(test)]
mod scratch;
#[cfg(test)]
mod work_ahead_tests;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::Ordering;

/// Tells the kernel that this process is the child of a fork: handles made before must attach anew.
#[pyfunction]
fn forked() {
    control::FORKS.fetch_add(1, Ordering::SeqCst);
}

/// Locks one byte of a lock file for this open file: "shared", "exclusive" or "none"; False if it
/// is taken.
#[pyfunction]
fn lock_byte(fd: i32, at: usize, kind: &str) -> PyResult<bool> {
    let kind = match kind {
        "exclusive" => libc::F_WRLCK,
        "shared" => libc::F_RDLCK,
        "none" => libc::F_UNLCK,
        _ => return Err(PyValueError::new_err("kind is 'shared', 'exclusive' or 'none'")),
    };
    os::try_lock_byte(fd, at, kind).map_err(errors::os_error)
}

/// Gives a file real blocks between two positions and makes it that long.
#[pyfunction]
fn allocate(py: Python<'_>, fd: i32, from_: usize, to: usize) -> PyResult<()> {
    py.detach(|| os::allocate(fd, from_, to)).map_err(errors::os_error)
}

/// The wall clock in nanoseconds, as appends read it.
#[pyfunction]
fn now_ns() -> i64 {
    os::now_ns()
}

#[pymodule(gil_used = false)]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<appender::Appender>()?;
    module.add_class::<writer::Writer>()?;
    module.add_class::<arrow::Batch>()?;
    module.add_class::<control::Control>()?;
    module.add_class::<keeper::Keeper>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<segment::Segment>()?;
    module.add_class::<tailer::Tailer>()?;
    for function in [
        wrap_pyfunction!(forked, module)?,
        wrap_pyfunction!(lock_byte, module)?,
        wrap_pyfunction!(allocate, module)?,
        wrap_pyfunction!(now_ns, module)?,
        wrap_pyfunction!(header::prepared_header, module)?,
        wrap_pyfunction!(header::begun_header, module)?,
        wrap_pyfunction!(header::index_header, module)?,
        wrap_pyfunction!(header::prepared_capacity, module)?,
        wrap_pyfunction!(appender::encode_attributes, module)?,
        wrap_pyfunction!(appender::segment_bytes_for, module)?,
    ] {
        module.add_function(function)?;
    }
    let table = PyDict::new(module.py());
    for (name, value) in layout::LAYOUT {
        table.set_item(name, value)?;
    }
    module.add("LAYOUT", table)?;
    module.add("COLUMNS", arrow::COLUMNS.to_vec())?;
    module.add("PROFILE", if cfg!(debug_assertions) { "debug" } else { "release" })?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))
}
