//! class Writer: one handle's way into the log, from the append lock to the flush that is waited
//! for.

use crate::buffer::Payload;
use crate::control::Control;
use crate::errors::*;
use crate::flush::{flush_or_wait, Flushed};
use crate::layout::*;
use crate::lock::{Held, Stall};
use crate::mend::mend;
use crate::os;
use crate::put::{put, Part, Put};
use crate::region::Region;
use crate::segment::Segment;
use crate::wake::Bell;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyRange};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::Arc;

/// From this many bytes on a copy lets other Python threads run.
const DETACH_BYTES: usize = 64 << 10;
/// How long a waiter for a flush sleeps before it looks whether the one who flushes still lives.
const FLUSH_WAIT_NS: u64 = 5_000_000;

#[pyclass(frozen, module = "penstock._kernel")]
pub struct Writer {
    pub control: Py<Control>,
    /// The Python object that opens, grows and rolls segments when an append cannot go on.
    host: Py<PyAny>,
    /// The active segment as this process has it mapped, for the holder of the append lock alone.
    current: UnsafeCell<Option<Arc<Region>>>,
    sync: bool,
    closed: AtomicBool,
    pub bell: Arc<Bell>,
}

// SAFETY: only the holder of the append lock touches `current`; all else is atomic or immutable.
unsafe impl Sync for Writer {}

impl Writer {
    /// The segment this process has mapped as active, for the holder of the append lock.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    fn current_locked(&self) -> &mut Option<Arc<Region>> {
        // SAFETY: the append lock makes its holder the only one here.
        unsafe { &mut *self.current.get() }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Appends the parts and waits until they are durable if the flush mode asks for it.
    #[inline]
    pub fn append(&self, py: Python<'_>, parts: &[Part<'_>], bytes: usize) -> PyResult<u64> {
        let control = self.control.get();
        loop {
            if !control.is_attached() || self.closed.load(Relaxed) {
                self.reattach(py)?;
            }
            let Some(lock) = self.lock_mended(py)? else {
                self.host.call_method0(py, "attach_active")?;
                continue;
            };
            let region = self.current_locked().as_deref();
            let put = if bytes < DETACH_BYTES {
                put(control, region, parts)
            } else {
                py.detach(|| put(control, region, parts))
            };
            let flush = if self.sync { self.current_locked().clone() } else { None };
            lock.unlock();
            match put {
                Put::Done(first, end) => {
                    control.wake_readers();
                    self.bell.appended(end);
                    if let Some(region) = flush {
                        self.flush_until(py, region, first + parts.len() as u64)?;
                    }
                    return Ok(first);
                }
                put => self.make_way(py, put, parts.len())?,
            }
        }
    }

    /// The rare ways an append cannot go on at once: Python sees to them, then it is tried again.
    #[cold]
    fn make_way(&self, py: Python<'_>, put: Put, count: usize) -> PyResult<()> {
        match put {
            Put::Elsewhere => self.host.call_method0(py, "attach_active").map(drop),
            Put::NoRoom(bytes) => self.host.call_method1(py, "make_room", (bytes, count)).map(drop),
            _ => Err(self.control.get().poison_error()),
        }
    }

    #[cold]
    fn reattach(&self, py: Python<'_>) -> PyResult<()> {
        if self.closed.load(Relaxed) {
            return Err(QueueClosedError::new_err(()));
        }
        self.host.call_method0(py, "reattach").map(drop)
    }

    /// Takes the append lock and mends what a dead owner left; None when that cannot be done before
    /// the active segment is mapped here.
    #[inline]
    fn lock_mended(&self, py: Python<'_>) -> PyResult<Option<Held<'_>>> {
        let control = self.control.get();
        let lock = control.lock_word(CONTROL_APPEND_LOCK_AT);
        let must_mend = !lock.try_fast() && lock.lock(py)?;
        let lock = Held(lock);
        if must_mend && !self.mend_locked(control) {
            lock.unlock_unmended();
            return Ok(None);
        }
        Ok(Some(lock))
    }

    /// Mends after a dead writer, if the segment it wrote to is the one mapped here.
    fn mend_locked(&self, control: &Control) -> bool {
        let number = control.active().number();
        match self.current_locked() {
            Some(region) if region.number == number => {
                mend(control, region);
                true
            }
            _ => false,
        }
    }

    /// The active segment, mapped anew if it is another one by now.
    #[cold]
    fn active_region(&self, py: Python<'_>) -> PyResult<Arc<Region>> {
        loop {
            if let Some(lock) = self.lock_mended(py)? {
                let region = self.current_locked().clone();
                let number = self.control.get().active().number();
                lock.unlock();
                match region {
                    Some(region) if region.number == number => return Ok(region),
                    _ => {}
                }
            }
            self.host.call_method0(py, "attach_active")?;
        }
    }

    /// Waits until everything below `sequence` is durable: one flushes, the others sleep till then.
    fn flush_until(&self, py: Python<'_>, region: Arc<Region>, sequence: u64) -> PyResult<()> {
        let control = self.control.get();
        let mut region = region;
        let durable = control.u64_at(CONTROL_DURABLE_SEQUENCE_AT);
        let mut stall = Stall::default();
        while durable.load(Acquire) < sequence {
            if control.poison_errno() != 0 {
                return Err(control.poison_error());
            }
            let is_done = || durable.load(Acquire) >= sequence;
            let flushed =
                py.detach(|| flush_or_wait(control, &region, &mut stall, FLUSH_WAIT_NS, is_done));
            match flushed {
                Flushed::Done => {}
                Flushed::Busy => self.check_waiting(py)?,
                Flushed::OlderFirst => {
                    self.host.call_method0(py, "flush_older")?;
                    // What is waited for may stand in a segment that was begun meanwhile.
                    if durable.load(Acquire) < sequence
                        && control.active().number() != region.number
                    {
                        region = self.active_region(py)?;
                    }
                    self.check_waiting(py)?;
                }
                Flushed::Poisoned => return Err(control.poison_error()),
                Flushed::Failed(error) => {
                    let errno = error.raw_os_error().unwrap_or(0);
                    return Err(FlushError::new_err((region.path.clone(), errno)));
                }
            }
        }
        Ok(())
    }

    /// Whether to wait on: a signal may end it, and the handle may be closed by another thread.
    fn check_waiting(&self, py: Python<'_>) -> PyResult<()> {
        if self.control.get().owner.load(Relaxed) == 0 {
            return Err(QueueClosedError::new_err(()));
        }
        py.check_signals()
    }

    pub fn checked_bytes(payload: &[u8]) -> PyResult<usize> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(PayloadTooLargeError::new_err((payload.len(), PAYLOAD_BYTES_MAX)));
        }
        Ok(payload.len())
    }

    pub fn append_parts<'py>(
        &self,
        py: Python<'py>,
        parts: &[Part<'_>],
    ) -> PyResult<Bound<'py, PyRange>> {
        let mut bytes = 0;
        for part in parts {
            bytes += Self::checked_bytes(part.payload)?;
        }
        if parts.is_empty() {
            if self.is_closed() {
                return Err(QueueClosedError::new_err(()));
            }
            let next = self.control.get().active().get(BANK_NEXT_SEQUENCE) as isize;
            return PyRange::new(py, next, next);
        }
        let first = self.append(py, parts, bytes)? as isize;
        PyRange::new(py, first, first + parts.len() as isize)
    }
}

#[pymethods]
impl Writer {
    #[new]
    fn new(control: Py<Control>, host: Py<PyAny>, sync: bool) -> Writer {
        Writer {
            control,
            host,
            current: UnsafeCell::new(None),
            sync,
            closed: AtomicBool::new(false),
            bell: Arc::new(Bell::default()),
        }
    }

    /// Makes a segment the one this handle appends to, under the append lock.
    fn use_segment(&self, segment: &Segment) {
        *self.current_locked() = Some(segment.region.clone());
        self.bell.ring_at_once();
    }

    /// Mends after a dead writer, under the append lock; False when the active segment is not the
    /// one mapped here.
    fn mend(&self) -> bool {
        self.mend_locked(self.control.get())
    }

    /// Waits until everything published before the call is durable.
    fn flush(&self, py: Python<'_>, segment: &Segment) -> PyResult<()> {
        let next = self.control.get().active().word(BANK_NEXT_SEQUENCE).load(Acquire);
        self.flush_until(py, segment.region.clone(), next)
    }

    /// Appends (payload, attributes) pairs as one; what a transaction does at its end.
    fn append_pairs<'py>(
        &self,
        py: Python<'py>,
        pairs: Vec<(Bound<'py, PyAny>, Bound<'py, PyBytes>)>,
    ) -> PyResult<Bound<'py, PyRange>> {
        for (_, attributes) in &pairs {
            let size = attributes.as_bytes().len();
            if size > ATTRIBUTES_BYTES_MAX {
                return Err(AttributesTooLargeError::new_err((size, ATTRIBUTES_BYTES_MAX)));
            }
        }
        let payloads =
            pairs.iter().map(|(payload, _)| Payload::of(payload)).collect::<PyResult<Vec<_>>>()?;
        let parts: Vec<Part<'_>> = payloads
            .iter()
            .zip(&pairs)
            .map(|(payload, (_, attributes))| Part {
                payload: payload.bytes(),
                attributes: attributes.as_bytes(),
            })
            .collect();
        self.append_parts(py, &parts)
    }

    /// The whole way of an append `count` times without Python, for the benchmarks: the nanoseconds
    /// it took in all.
    fn append_loop(&self, py: Python<'_>, payload: &[u8], count: usize) -> PyResult<u64> {
        let begun = os::monotonic_ns();
        for _ in 0..count {
            self.append(py, &[Part { payload, attributes: &[] }], payload.len())?;
        }
        Ok(os::monotonic_ns() - begun)
    }

    /// Every later append raises QueueClosedError.
    fn close(&self) {
        self.closed.store(true, Relaxed);
        self.bell.ring();
    }

    /// The host holds this writer, so Python must be able to see the cycle.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.control)?;
        visit.call(&self.host)
    }
}
