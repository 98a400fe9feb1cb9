//! The bytes of whatever Python hands in: bytes as they are, anything else by the buffer protocol.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use std::ffi::{c_char, c_int, c_void};

/// CPython's Py_buffer. The stable ABI promises it from 3.11 on; it has had this very shape since
/// 3.3, so the one wheel may serve 3.10 too.
#[repr(C)]
struct RawBuffer {
    start: *mut c_void,
    owner: *mut ffi::PyObject,
    length: ffi::Py_ssize_t,
    item_bytes: ffi::Py_ssize_t,
    read_only: c_int,
    dimensions: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
}

/// Borrowed bytes of a Python object, which stays alive and exported for as long as this does.
pub enum Payload<'py> {
    Bytes(Bound<'py, PyBytes>),
    Buffer(Box<RawView>),
}

pub struct RawView(RawBuffer);

// SAFETY: the view is only read, and released by whoever holds the GIL when it is dropped.
unsafe impl Send for RawView {}
// SAFETY: as above.
unsafe impl Sync for RawView {}

impl Drop for RawView {
    fn drop(&mut self) {
        // SAFETY: filled by PyObject_GetBuffer and released once; payloads are dropped with the GIL
        // held.
        unsafe { PyBuffer_Release(&mut self.0) };
    }
}

impl<'py> Payload<'py> {
    #[inline]
    pub fn of(object: &Bound<'py, PyAny>) -> PyResult<Payload<'py>> {
        Payload::named("a payload", object)
    }

    /// As `of`, without a count of references that goes up and down again.
    #[inline]
    pub fn of_owned(object: Bound<'py, PyAny>) -> PyResult<Payload<'py>> {
        match object.cast_into_exact::<PyBytes>() {
            Ok(bytes) => Ok(Payload::Bytes(bytes)),
            Err(error) => Payload::of(&error.into_inner()),
        }
    }

    /// The bytes of something else than a payload, which an error then calls so.
    #[inline]
    pub fn named(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Payload<'py>> {
        match object.cast_exact::<PyBytes>() {
            Ok(bytes) => Ok(Payload::Bytes(bytes.clone())),
            Err(_) => Payload::by_protocol(name, object),
        }
    }

    #[cold]
    fn by_protocol(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Payload<'py>> {
        let mut view = Box::new(RawView(RawBuffer {
            start: std::ptr::null_mut(),
            owner: std::ptr::null_mut(),
            length: 0,
            item_bytes: 0,
            read_only: 0,
            dimensions: 0,
            format: std::ptr::null_mut(),
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        }));
        // SAFETY: a live object and a writable view; flags 0 ask for plain contiguous bytes.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &mut view.0, 0) } == 0 {
            Ok(Payload::Buffer(view))
        } else {
            // Nothing was filled in, so nothing may be released.
            std::mem::forget(view);
            Err(refusal(name, object, PyErr::fetch(object.py())))
        }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Payload::Bytes(bytes) => bytes.as_bytes(),
            Payload::Buffer(view) if view.0.length == 0 => &[],
            Payload::Buffer(view) => {
                // SAFETY: the exporter keeps this memory until the view is released.
                unsafe { std::slice::from_raw_parts(view.0.start.cast(), view.0.length as usize) }
            }
        }
    }
}

/// Why an object cannot be taken as bytes, and what to do.
fn refusal(name: &str, object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let what = format!("{name} is bytes, or anything with a buffer");
    if object.is_instance_of::<PyString>() {
        PyTypeError::new_err(format!("{what}; encode a str: text.encode()"))
    } else if PyMemoryView::from(object).is_ok() {
        PyTypeError::new_err(format!("{what} whose bytes stand together; copy others: bytes(view)"))
    } else if error.is_instance_of::<PyTypeError>(object.py()) {
        PyTypeError::new_err(format!("{what}, not {}", object.get_type()))
    } else {
        error
    }
}
