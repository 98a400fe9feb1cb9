//! A message as Python sees it, and its attributes on the way in and out of a frame.

use crate::buffer::Payload;
use crate::errors::AttributesTooLargeError;
use crate::frame::*;
use crate::layout::*;
use crate::segment::Segment;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString};

/// Payloads up to this size are copied when the message is read; larger ones when asked for.
const EAGER_BYTES_MAX: usize = 4096;

/// One message of a queue: immutable, and valid for as long as it is held.
#[pyclass(frozen, module = "penstock._kernel")]
pub struct Message {
    /// Its number in the log.
    #[pyo3(get)]
    sequence: u64,
    /// When it was appended, in nanoseconds since 1970.
    #[pyo3(get)]
    timestamp_ns: i64,
    segment: Py<Segment>,
    position: usize,
    payload_at: u32,
    length: u32,
    payload: PyOnceLock<Py<PyBytes>>,
}

impl Message {
    #[inline]
    pub fn new(
        py: Python<'_>,
        segment: &Py<Segment>,
        position: usize,
        sequence: u64,
        frame: &Frame<'_>,
    ) -> Message {
        let payload = PyOnceLock::new();
        let bytes = frame.payload();
        if bytes.len() <= EAGER_BYTES_MAX {
            let _ = payload.set(py, PyBytes::new(py, bytes).unbind());
        }
        Message {
            sequence,
            timestamp_ns: frame.head.timestamp,
            segment: segment.clone_ref(py),
            position,
            payload_at: frame.payload_at() as u32,
            length: frame.head.length,
            payload,
        }
    }

    fn bytes(&self, from: u32, to: u32) -> &[u8] {
        let region = &self.segment.get().region;
        region.map.bytes(self.position + from as usize, self.position + to as usize)
    }

    fn attributes(&self) -> &[u8] {
        self.bytes(FRAME_HEAD_BYTES as u32, self.payload_at)
    }

    fn time<'py>(&self, py: Python<'py>, tag: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        attribute_u64(self.attributes(), tag).map(|ns| to_datetime(py, ns as i64)).transpose()
    }
}

fn to_datetime(py: Python<'_>, ns: i64) -> PyResult<Bound<'_, PyAny>> {
    static CONVERT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CONVERT.import(py, "penstock.message", "datetime_of")?.call1((ns,))
}

#[pymethods]
impl Message {
    /// When it was appended: an aware datetime in UTC, cut to microseconds.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_datetime(py, self.timestamp_ns)
    }

    /// The bytes that were appended.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> &Bound<'py, PyBytes> {
        self.payload
            .get_or_init(py, || PyBytes::new(py, self.bytes(self.payload_at, self.length)).unbind())
            .bind(py)
    }

    /// The payload without a copy: a read-only memoryview of the mapped file, which it keeps alive.
    #[getter]
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let from = self.position + self.payload_at as usize;
        let to = self.position + self.length as usize;
        self.segment.get().view(py, from, to)
    }

    /// The key given at append, or None.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        attribute(self.attributes(), ATTRIBUTE_KEY).map(|key| PyBytes::new(py, key))
    }

    /// The headers given at append; a new dict each time.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        for (name, value) in headers_of(self.attributes()) {
            headers.set_item(PyString::from_bytes(py, name)?, PyString::from_bytes(py, value)?)?;
        }
        Ok(headers)
    }

    /// The priority given at append; Priority.MEDIUM unless another was.
    #[getter]
    fn priority<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static PRIORITY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        PRIORITY
            .import(py, "penstock.message", "Priority")?
            .call1((priority_of(self.attributes()),))
    }

    /// When it expires, or None.
    #[getter]
    fn expires_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.time(py, ATTRIBUTE_EXPIRES_AT)
    }

    /// From when on it is to be delivered, or None.
    #[getter]
    fn deliver_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.time(py, ATTRIBUTE_DELIVER_AT)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let bytes = self.bytes(self.payload_at, self.length);
        let shown = PyBytes::new(py, &bytes[..bytes.len().min(32)]).repr()?;
        let more = if bytes.len() > 32 { "…" } else { "" };
        let (sequence, length) = (self.sequence, bytes.len());
        Ok(format!("<Message {sequence}: {shown}{more} ({length} bytes)>"))
    }
}

/// The names and values of the headers.
pub fn headers_of(attributes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    Attributes(attributes).filter(|(tag, _)| *tag == ATTRIBUTE_HEADER).filter_map(|(_, value)| {
        let length = u16::from_le_bytes([*value.first()?, *value.get(1)?]) as usize;
        value.get(2..)?.split_at_checked(length)
    })
}

pub const PRIORITY_MEDIUM: u8 = 1;
const PRIORITY_HIGH: u8 = 2;

pub fn priority_of(attributes: &[u8]) -> u8 {
    match attribute(attributes, ATTRIBUTE_PRIORITY) {
        Some([priority]) if *priority <= PRIORITY_HIGH => *priority,
        _ => PRIORITY_MEDIUM,
    }
}

/// What a user may say of a message beside its payload, as Python hands it in.
pub struct Options<'a, 'py> {
    pub key: Option<&'a Bound<'py, PyAny>>,
    pub headers: Option<&'a Bound<'py, PyAny>>,
    pub ttl: Option<&'a Bound<'py, PyAny>>,
    pub deliver_after: Option<&'a Bound<'py, PyAny>>,
    pub priority: Option<&'a Bound<'py, PyAny>>,
}

impl Options<'_, '_> {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.key.is_none()
            && self.headers.is_none()
            && self.ttl.is_none()
            && self.deliver_after.is_none()
            && self.priority.is_none()
    }

    /// The attributes of a frame that say this.
    #[inline]
    pub fn encode(&self) -> PyResult<Vec<u8>> {
        if self.is_empty() {
            Ok(Vec::new())
        } else {
            self.encode_some()
        }
    }

    #[cold]
    fn encode_some(&self) -> PyResult<Vec<u8>> {
        let mut attributes = Vec::new();
        let now = crate::os::now_ns();
        if let Some(priority) = self.priority {
            let priority: u8 = priority.extract().map_err(|_| bad_priority(priority))?;
            if priority > PRIORITY_HIGH {
                return Err(PyValueError::new_err("priority is Priority.LOW, MEDIUM or HIGH"));
            }
            if priority != PRIORITY_MEDIUM {
                push(&mut attributes, ATTRIBUTE_PRIORITY, &[priority])?;
            }
        }
        for (name, duration, tag) in [
            ("ttl", self.ttl, ATTRIBUTE_EXPIRES_AT),
            ("deliver_after", self.deliver_after, ATTRIBUTE_DELIVER_AT),
        ] {
            if let Some(duration) = duration {
                let at = now.saturating_add(nanoseconds(name, duration)?);
                push(&mut attributes, tag, &at.to_le_bytes())?;
            }
        }
        if let Some(key) = self.key {
            push(&mut attributes, ATTRIBUTE_KEY, Payload::named("key", key)?.bytes())?;
        }
        if let Some(headers) = self.headers {
            push_headers(&mut attributes, headers)?;
        }
        Ok(attributes)
    }
}

fn bad_priority(given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("priority is Priority.LOW, MEDIUM or HIGH, not {given:?}"))
}

fn push(attributes: &mut Vec<u8>, tag: usize, value: &[u8]) -> PyResult<()> {
    let size = attributes.len() + ATTRIBUTE_HEAD_BYTES + value.len();
    if size > ATTRIBUTES_BYTES_MAX {
        return Err(AttributesTooLargeError::new_err((size, ATTRIBUTES_BYTES_MAX)));
    }
    push_attribute(attributes, tag, value);
    Ok(())
}

fn push_headers(attributes: &mut Vec<u8>, headers: &Bound<'_, PyAny>) -> PyResult<()> {
    let wrong = || PyTypeError::new_err("headers is a mapping of str to str");
    for pair in headers.call_method0("items").map_err(|_| wrong())?.try_iter()? {
        let (name, value): (String, String) = pair?.extract().map_err(|_| wrong())?;
        if name.len() > u16::MAX as usize {
            return Err(AttributesTooLargeError::new_err((name.len(), ATTRIBUTES_BYTES_MAX)));
        }
        let mut both = Vec::with_capacity(2 + name.len() + value.len());
        both.extend_from_slice(&(name.len() as u16).to_le_bytes());
        both.extend_from_slice(name.as_bytes());
        both.extend_from_slice(value.as_bytes());
        push(attributes, ATTRIBUTE_HEADER, &both)?;
    }
    Ok(())
}

/// A timedelta in nanoseconds; it must not be negative.
fn nanoseconds(name: &str, duration: &Bound<'_, PyAny>) -> PyResult<i64> {
    let part = |unit: &str| -> PyResult<i64> {
        duration
            .getattr(unit)
            .and_then(|value| value.extract())
            .map_err(|_| PyTypeError::new_err(format!("{name} is a datetime.timedelta")))
    };
    let seconds = part("days")?.saturating_mul(86_400).saturating_add(part("seconds")?);
    let rest = part("microseconds")?.saturating_mul(1000);
    let ns = seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    if ns < 0 {
        return Err(PyValueError::new_err(format!("{name} must not be negative")));
    }
    Ok(ns)
}
