//! class Segment: one segment file as Python opens, scans, finds in, seals and copies it.

use crate::errors::{bad_header, io_error, os_error, FlushError};
use crate::frame::*;
use crate::layout::*;
use crate::os;
use crate::region::Region;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{IntoPyDict, PyBytes, PyMemoryView, PySlice};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex};

#[pyclass(frozen, module = "penstock._kernel")]
pub struct Segment {
    pub region: Arc<Region>,
    /// A memoryview of the file, made when the first view is asked for.
    whole: Mutex<Option<Py<PyMemoryView>>>,
}

impl Segment {
    /// The file's bytes without a copy, by a mapping of Python's own: it lives as long as its
    /// views.
    pub fn view<'py>(
        &self,
        py: Python<'py>,
        from: usize,
        to: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut whole = self.whole.lock_py_attached(py).expect("nothing panics in it");
        let known = match whole.as_ref().map(|view| view.bind(py).clone()) {
            Some(view) if view.len()? >= to => view,
            _ => {
                let mmap = py.import("mmap")?;
                let access = [("access", mmap.getattr("ACCESS_READ")?)].into_py_dict(py)?;
                let made = mmap.call_method("mmap", (self.region.data_fd(), 0), Some(&access))?;
                let view = PyMemoryView::from(&made)?;
                *whole = Some(view.clone().unbind());
                view
            }
        };
        known.get_item(PySlice::new(py, from as isize, to as isize, 1))
    }
}

#[pymethods]
impl Segment {
    /// Maps a segment file and takes over its descriptors (`index` may be -1).
    #[new]
    fn new(path: PathBuf, data: i32, index: i32, writable: bool) -> PyResult<Segment> {
        if data < 0 {
            return Err(PyValueError::new_err("a segment needs the descriptor of its file"));
        }
        // SAFETY: the caller hands over descriptors it has just opened and never uses again.
        let data = unsafe { OwnedFd::from_raw_fd(data) };
        // SAFETY: as above.
        let index = (index >= 0).then(|| unsafe { OwnedFd::from_raw_fd(index) });
        let mut header = vec![0; SEGMENT_HEADER_BYTES];
        if !os::read_at(data.as_raw_fd(), &mut header, 0) {
            return Err(bad_header(&path, "the file is shorter than a segment's header"));
        }
        let facts = crate::header::read(&path, &header)?;
        let region = Region::over(path.clone(), data, index, &facts, writable)
            .map_err(|error| io_error(&path, &error))?;
        Ok(Segment { region: Arc::new(region), whole: Mutex::new(None) })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.region.path.clone()
    }

    #[getter]
    fn number(&self) -> u64 {
        self.region.number
    }

    #[getter]
    fn base_sequence(&self) -> u64 {
        self.region.base
    }

    #[getter]
    fn capacity(&self) -> usize {
        self.region.capacity
    }

    #[getter]
    fn index_every(&self) -> u64 {
        self.region.index_every
    }

    /// A 64-bit word of the header, by its place in the layout.
    fn header_word(&self, at: usize) -> u64 {
        assert!(at <= SEGMENT_HEADER_BYTES - 8);
        self.region.map.u64_at(at).load(Relaxed)
    }

    fn header_bytes<'py>(&self, py: Python<'py>, at: usize, length: usize) -> Bound<'py, PyBytes> {
        assert!(at <= SEGMENT_HEADER_BYTES && length <= SEGMENT_HEADER_BYTES - at);
        PyBytes::new(py, self.region.map.bytes(at, at + length))
    }

    /// Position, ordinal, last timestamp, last check, highest durable mark, sealed, fault; then the
    /// position and ordinal where the next frame was looked for.
    #[allow(clippy::type_complexity)]
    fn walk(
        &self,
        py: Python<'_>,
        position: usize,
        ordinal: u64,
        limit: usize,
    ) -> (usize, u64, i64, u64, u64, bool, Option<&'static str>, usize, u64) {
        let region = &self.region;
        let end = py.detach(|| region.walk(position, ordinal, region.within(limit)));
        let (stop_position, stop_ordinal) = end.stop;
        (
            end.position,
            end.ordinal,
            end.timestamp,
            end.check,
            end.marked,
            end.sealed,
            end.fault,
            stop_position,
            stop_ordinal,
        )
    }

    fn resync(
        &self,
        py: Python<'_>,
        position: usize,
        ordinal: u64,
        limit: usize,
    ) -> Option<(usize, u64)> {
        let region = &self.region;
        py.detach(|| region.resync(position, ordinal, region.within(limit)))
    }

    fn locate(&self, py: Python<'_>, sequence: u64, limit: usize) -> (usize, u64) {
        let region = &self.region;
        py.detach(|| region.locate(sequence.saturating_sub(region.base), region.within(limit)))
    }

    fn locate_time(&self, py: Python<'_>, time: i64, limit: usize, count: u64) -> (usize, u64) {
        let region = &self.region;
        py.detach(|| region.locate_time(time, region.within(limit), count))
    }

    /// The last true index entry at or below this ordinal: position and ordinal.
    fn indexed_before(&self, ordinal: u64, limit: usize) -> (usize, u64) {
        self.region.indexed_before(ordinal, self.region.within(limit))
    }

    /// Whether every entry the index should hold for `count` messages is there and true.
    fn index_is_whole(&self, py: Python<'_>, count: u64, limit: usize) -> bool {
        let region = &self.region;
        let entries = count.div_ceil(region.index_every);
        let limit = region.within(limit);
        py.detach(|| (0..entries).all(|k| region.index_entry(k, limit).is_some()))
    }

    /// The index entries of all frames up to the limit, made anew.
    fn index_entries<'py>(&self, py: Python<'py>, limit: usize) -> Bound<'py, PyBytes> {
        let region = &self.region;
        let entries = py.detach(|| region.index_entries(region.within(limit)));
        PyBytes::new(py, &entries)
    }

    /// Writes the seal frame at the end of the messages; it is published like any frame.
    fn seal(&self, position: usize, count: u64, first_timestamp: i64, last_timestamp: i64) {
        let region = &self.region;
        let mut content = [0; SEAL_CONTENT_BYTES];
        let last = region.sequence_of(count).wrapping_sub(1);
        write_u64(&mut content, SEAL_COUNT_AT, count);
        write_u64(&mut content, SEAL_LAST_SEQUENCE_AT, last);
        write_u64(&mut content, SEAL_FIRST_TIMESTAMP_AT, first_timestamp as u64);
        write_u64(&mut content, SEAL_LAST_TIMESTAMP_AT, last_timestamp as u64);
        let head = Head::new(KIND_SEAL, 0, SEAL_CONTENT_BYTES, last_timestamp);
        let target = region.map.bytes_mut(position, position + SEAL_FRAME_BYTES);
        encode(target, &head, [&[], &[]], &content, region.checksum, count);
        region.map.u64_at(position).store(head.word(), Release);
    }

    /// The word that begins a frame here: zero when none does, or when the file ends before.
    fn word_at(&self, position: usize) -> PyResult<u64> {
        if self.file_bytes()? < position.saturating_add(8) as u64 {
            return Ok(0);
        }
        Ok(self.region.map.u64_at(position).load(Acquire))
    }

    /// Gives the file real blocks up to `to`; OSError when the disk is full.
    fn allocate(&self, py: Python<'_>, from_: usize, to: usize) -> PyResult<()> {
        let fd = self.region.data_fd();
        py.detach(|| os::allocate(fd, from_, to)).map_err(os_error)?;
        os::stretch(fd, to, self.region.capacity);
        Ok(())
    }

    /// Forces the segment to the disk.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let region = &self.region;
        py.detach(|| os::flush(region.data_fd())).map_err(|error| {
            FlushError::new_err((region.path.clone(), error.raw_os_error().unwrap_or(0)))
        })
    }

    /// The file's length now.
    fn file_bytes(&self) -> PyResult<u64> {
        Ok(os::file_bytes(self.region.data_fd()).map_err(os_error)? as u64)
    }
}
