//! class Appender: how users append, one message or many as one, and the options of a message.

use crate::buffer::Payload;
use crate::errors::ReadOnlyError;
use crate::layout::*;
use crate::message::Options;
use crate::put::Part;
use crate::writer::Writer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyRange, PyString, PyTuple};

/// Appends messages to a queue; share it among threads.
#[pyclass(frozen, subclass, module = "penstock._kernel")]
pub struct Appender {
    writer: Option<Py<Writer>>,
}

impl Appender {
    #[inline]
    fn writer(&self) -> PyResult<&Writer> {
        match &self.writer {
            Some(writer) => Ok(writer.get()),
            None => Err(ReadOnlyError::new_err(())),
        }
    }
}

#[pymethods]
impl Appender {
    #[new]
    #[pyo3(signature = (writer, *_arguments, **_options))]
    fn new(
        writer: Option<Py<Writer>>,
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyAny>>,
    ) -> Appender {
        Appender { writer }
    }

    /// Appends one message and returns its sequence.
    ///
    /// The payload is bytes or anything with a buffer. On return the message is published: it
    /// survives the death of any process, and power loss as the flush mode says.
    ///
    ///     >>> queue.append(b"hello", key=b"k", headers={"a": "b"})
    ///     0
    #[pyo3(signature = (
        payload, *, key=None, headers=None, ttl=None, deliver_after=None, priority=None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn append(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        ttl: Option<&Bound<'_, PyAny>>,
        deliver_after: Option<&Bound<'_, PyAny>>,
        priority: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let writer = self.writer()?;
        let payload = Payload::of(payload)?;
        let attributes = Options { key, headers, ttl, deliver_after, priority }.encode()?;
        let bytes = Writer::checked_bytes(payload.bytes())?;
        let part = Part { payload: payload.bytes(), attributes: &attributes };
        writer.append(py, &[part], bytes)
    }

    /// Appends all the payloads as one: after any crash either all of them are there or none.
    ///
    /// The options hold for each message. Returns the range of their sequences.
    ///
    ///     >>> queue.append_many([b"a", b"b"])
    ///     range(0, 2)
    #[pyo3(signature = (
        payloads, *, key=None, headers=None, ttl=None, deliver_after=None, priority=None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn append_many<'py>(
        &self,
        py: Python<'py>,
        payloads: &Bound<'py, PyAny>,
        key: Option<&Bound<'py, PyAny>>,
        headers: Option<&Bound<'py, PyAny>>,
        ttl: Option<&Bound<'py, PyAny>>,
        deliver_after: Option<&Bound<'py, PyAny>>,
        priority: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyRange>> {
        let writer = self.writer()?;
        let attributes = Options { key, headers, ttl, deliver_after, priority }.encode()?;
        let payloads = payloads_of(payloads)?;
        let parts: Vec<Part<'_>> = payloads
            .iter()
            .map(|payload| Part { payload: payload.bytes(), attributes: &attributes })
            .collect();
        writer.append_parts(py, &parts)
    }

    /// The writer holds the queue that holds this, so Python must be able to see the cycle.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.writer)
    }
}

fn payloads_of<'py>(payloads: &Bound<'py, PyAny>) -> PyResult<Vec<Payload<'py>>> {
    if let Ok(list) = payloads.cast::<PyList>() {
        let mut all = Vec::with_capacity(list.len());
        for payload in list.iter() {
            all.push(Payload::of_owned(payload)?);
        }
        Ok(all)
    } else if is_one_payload(payloads) {
        Err(PyTypeError::new_err("append_many takes several payloads; use append for one"))
    } else {
        payloads.try_iter()?.map(|payload| Payload::of(&payload?)).collect()
    }
}

/// Whether going through it would yield single bytes or letters.
fn is_one_payload(payloads: &Bound<'_, PyAny>) -> bool {
    payloads.is_instance_of::<PyBytes>()
        || payloads.is_instance_of::<PyString>()
        || payloads.is_instance_of::<PyByteArray>()
        || payloads.is_instance_of::<PyMemoryView>()
}

/// The attributes of a message as they stand in its frame; a transaction collects them.
#[pyfunction]
#[pyo3(signature = (
        payload, *, key=None, headers=None, ttl=None, deliver_after=None, priority=None
    ))]
pub fn encode_attributes<'py>(
    py: Python<'py>,
    payload: &Bound<'py, PyAny>,
    key: Option<&Bound<'py, PyAny>>,
    headers: Option<&Bound<'py, PyAny>>,
    ttl: Option<&Bound<'py, PyAny>>,
    deliver_after: Option<&Bound<'py, PyAny>>,
    priority: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    Writer::checked_bytes(Payload::of(payload)?.bytes())?;
    let attributes = Options { key, headers, ttl, deliver_after, priority }.encode()?;
    Ok(PyBytes::new(py, &attributes))
}

/// The least number of bytes that a segment must have for one append of this many frame bytes.
#[pyfunction]
pub fn segment_bytes_for(frames_bytes: usize) -> PyResult<usize> {
    let bytes = frames_bytes.saturating_add(SEGMENT_HEADER_BYTES + SEAL_FRAME_BYTES);
    if bytes > SEGMENT_BYTES_MAX {
        return Err(PyValueError::new_err("these messages together are larger than any segment"));
    }
    Ok(bytes.next_multiple_of(4096))
}
