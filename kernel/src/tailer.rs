//! class Tailer: a place in the log, and the calls that run once per message read.

use crate::arrow::{Batch, Builder};
use crate::control::Control;
use crate::cursor::{Cursor, Step};
use crate::errors::FormatVersionError;
use crate::frame::Frame;
use crate::layout::*;
use crate::message::Message;
use crate::place::{Place, Trouble};
use crate::segment::Segment;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::time::Duration;

/// A sleeping reader looks for signals, and for what a killed appender did not tell, this often.
const SLEEP_NS: u64 = 50_000_000;
/// A reader without a control page to sleep on looks again this often.
const POLL_NS: u64 = 2_000_000;

/// Reads a log in order. The Python class over it moves it from segment to segment.
#[pyclass(subclass, module = "penstock._kernel")]
pub struct Tailer {
    control: Option<Py<Control>>,
    place: Option<Place>,
    skip: bool,
    /// Messages passed over because they were damaged.
    #[pyo3(get, set)]
    skipped: u64,
    /// What went wrong behind messages that were still handed out: the next read raises it.
    pending: Option<PyErr>,
}

impl Tailer {
    /// The tailer for this call; an error when another thread is inside a call of the same one.
    #[inline]
    fn mine<'a>(slf: &'a Bound<'_, Self>) -> PyResult<PyRefMut<'a, Self>> {
        slf.try_borrow_mut().map_err(|_| {
            PyRuntimeError::new_err("another thread is reading with this tailer: give each its own")
        })
    }

    /// Runs `take` on the next message, if there is one in the segment; None leaves it for later.
    #[inline]
    fn step<T>(
        &mut self,
        take: impl FnOnce(&Py<Segment>, usize, u64, &Frame<'_>) -> Option<T>,
    ) -> Result<T, Trouble> {
        if self.pending.is_some() {
            return Err(Trouble::Pending);
        }
        let Some(Place { segment, region, cursor }) = self.place.as_mut() else {
            return Err(Trouble::End);
        };
        let control = self.control.as_ref().map(Py::get);
        loop {
            match cursor.step(region, control) {
                Step::Frame(frame) => {
                    let sequence = region.sequence_of(cursor.ordinal);
                    let taken = take(segment, cursor.position, sequence, &frame);
                    if taken.is_some() {
                        cursor.pass(&frame);
                    }
                    return taken.ok_or(Trouble::TooMuch);
                }
                Step::Lost(count) => self.skipped += if self.skip { count } else { 0 },
                Step::End => return Err(Trouble::End),
                Step::Damage(reason) => return Err(Trouble::Damage(reason)),
                Step::Unknown(tag) => return Err(Trouble::Unknown(tag)),
            }
        }
    }

    /// Sees to what stopped a step; false when there is nothing more to read now.
    #[cold]
    fn handle(slf: &Bound<'_, Self>, trouble: Trouble) -> PyResult<bool> {
        match trouble {
            Trouble::End => slf.call_method0("_advance")?.is_truthy(),
            Trouble::Pending => Self::mine(slf)?.pending.take().map_or(Ok(true), Err),
            Trouble::Damage(reason) => Self::pass_damage(slf, reason).map(|()| true),
            Trouble::Unknown(tag) => Err(Self::mine(slf)?.refuse(tag)),
            Trouble::TooMuch => Ok(false),
        }
    }

    /// Steps over the damage in front and tells of it: as an error, or by a call when it is
    /// skipped.
    fn pass_damage(slf: &Bound<'_, Self>, reason: &str) -> PyResult<()> {
        let (error, skip) = {
            let tailer = &mut *Self::mine(slf)?;
            let Some(Place { region, cursor, .. }) = tailer.place.as_mut() else {
                return Ok(());
            };
            let (position, ordinal) = (cursor.position, cursor.ordinal);
            let next = cursor.pass_damage(region);
            if tailer.skip {
                tailer.skipped += cursor.ordinal.saturating_sub(ordinal);
            }
            let next_sequence = next.map(|ordinal| region.sequence_of(ordinal));
            (region.corruption(position, ordinal, reason, next_sequence), tailer.skip)
        };
        if !skip {
            return Err(error);
        }
        slf.call_method1("_damaged", (error.into_value(slf.py()),)).map(drop)
    }

    /// Moves behind a message this version cannot understand.
    fn refuse(&mut self, tag: usize) -> PyErr {
        let Some(Place { region, cursor, .. }) = self.place.as_mut() else {
            return FormatVersionError::new_err(("", tag, FORMAT_VERSION));
        };
        let what = format!("attribute {tag} of message {}", region.sequence_of(cursor.ordinal));
        cursor.pass_unread(region);
        FormatVersionError::new_err((region.path.clone(), what, FORMAT_VERSION))
    }

    fn next_message(slf: &Bound<'_, Self>) -> PyResult<Option<Message>> {
        let py = slf.py();
        loop {
            let step = Self::mine(slf)?.step(|segment, position, sequence, frame| {
                Some(Message::new(py, segment, position, sequence, frame))
            });
            match step {
                Ok(message) => return Ok(Some(message)),
                Err(trouble) if Self::handle(slf, trouble)? => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Gathers messages of this segment into columns until they are large enough or it ends.
    fn gather(&mut self, builder: &mut Builder, bytes_max: usize) -> Option<Trouble> {
        if self.pending.is_some() {
            return Some(Trouble::Pending);
        }
        let Some(Place { region, cursor, .. }) = self.place.as_mut() else {
            return Some(Trouble::End);
        };
        let control = self.control.as_ref().map(Py::get);
        loop {
            match cursor.step(region, control) {
                Step::Frame(frame) => {
                    if !builder.has_room(&frame, bytes_max) {
                        return None;
                    }
                    builder.push(region.sequence_of(cursor.ordinal), &frame);
                    cursor.pass(&frame);
                }
                Step::Lost(count) => self.skipped += if self.skip { count } else { 0 },
                Step::End => return Some(Trouble::End),
                Step::Damage(reason) => return Some(Trouble::Damage(reason)),
                Step::Unknown(tag) => return Some(Trouble::Unknown(tag)),
            }
        }
    }
}

fn not_negative(name: &str, value: i64) -> PyResult<usize> {
    let refused = || PyValueError::new_err(format!("{name} is 0 or more, not {value}"));
    usize::try_from(value).map_err(|_| refused())
}

#[pymethods]
impl Tailer {
    #[new]
    #[pyo3(signature = (control, skip, *_arguments, **_options))]
    fn new(
        control: Option<Py<Control>>,
        skip: bool,
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyAny>>,
    ) -> Tailer {
        Tailer { control, place: None, skip, skipped: 0, pending: None }
    }

    /// Stands the tailer in a segment that may be read up to `limit`; `limit_ordinal` is the
    /// ordinal there, or None while the segment is active and the limit follows the appenders.
    #[pyo3(signature = (segment, position, ordinal, limit, limit_ordinal))]
    fn _use(
        &mut self,
        segment: Bound<'_, Segment>,
        position: usize,
        ordinal: u64,
        limit: usize,
        limit_ordinal: Option<u64>,
    ) {
        let region = segment.get().region.clone();
        let cursor = Cursor::new(position, ordinal, region.within(limit), limit_ordinal);
        self.pending = None;
        self.place = Some(Place { segment: segment.unbind(), region, cursor });
    }

    /// Follows another control page from now on, when a new one was put in place.
    fn _watch(&mut self, control: Option<Py<Control>>) {
        self.control = control;
    }

    /// Moves to a message of the segment it stands in; False when that is not where it is.
    fn _seek_within(&mut self, sequence: &Bound<'_, PyAny>) -> bool {
        self.pending = None;
        let control = self.control.as_ref().map(Py::get);
        let Some(Place { region, cursor, .. }) = self.place.as_mut() else { return false };
        // What is no sequence is Python's to refuse, a number beyond all of them too.
        let sequence: Option<u64> = sequence.extract().ok();
        let ordinal = sequence.and_then(|sequence| sequence.checked_sub(region.base));
        ordinal.is_some_and(|ordinal| cursor.seek(region, control, ordinal))
    }

    /// Says how far the segment may be read, when that has become known; it is final with an
    /// ordinal.
    fn _extend(&mut self, limit: usize, limit_ordinal: Option<u64>) {
        if let Some(Place { region, cursor, .. }) = self.place.as_mut() {
            cursor.extend(region.within(limit), limit_ordinal);
        }
    }

    /// Segment number, position and ordinal; None before the first segment.
    #[getter]
    fn _place(&self) -> Option<(u64, usize, u64)> {
        let Place { region, cursor, .. } = self.place.as_ref()?;
        Some((region.number, cursor.position, cursor.ordinal))
    }

    /// Whether the limit of the present segment will not change any more.
    #[getter]
    fn _is_final(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.cursor.is_final())
    }

    fn _leave(&mut self) {
        self.pending = None;
        self.place = None;
    }

    /// The sequence of the message that the next read returns, if none is missing.
    #[getter]
    fn next_sequence(&self) -> u64 {
        self.place.as_ref().map_or(0, |at| at.region.sequence_of(at.cursor.ordinal))
    }

    /// Returns the next message, or None when there is none now.
    ///
    ///     >>> queue.tailer().read()
    ///     <Message 0: b'hello' (5 bytes)>
    fn read(slf: &Bound<'_, Self>) -> PyResult<Option<Message>> {
        Self::next_message(slf)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Message>> {
        Self::next_message(slf)
    }

    /// Returns up to `count` messages that are there now; at most `bytes_max` bytes, but one.
    ///
    ///     >>> [message.payload for message in queue.tailer().read_many(2)]
    ///     [b'hello', b'world']
    #[pyo3(signature = (count = 1000, *, bytes_max = None))]
    fn read_many<'py>(
        slf: &Bound<'py, Self>,
        count: i64,
        bytes_max: Option<i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let messages = PyList::empty(py);
        let count = not_negative("count", count)?;
        let mut left = not_negative("bytes_max", bytes_max.unwrap_or(i64::MAX))?;
        let begun = Self::mine(slf)?.place.as_ref().map(|place| place.copy(py));
        while messages.len() < count {
            let is_first = messages.is_empty();
            let step = Self::mine(slf)?.step(|segment, position, sequence, frame| {
                let bytes = frame.payload().len();
                if bytes > left && !is_first {
                    return None;
                }
                left = left.saturating_sub(bytes);
                Some(Message::new(py, segment, position, sequence, frame))
            });
            match step {
                Ok(message) => messages.append(Bound::new(py, message)?)?,
                // What was read before is handed out first; the next call meets this again.
                Err(Trouble::Damage(_) | Trouble::Unknown(_)) if !is_first => break,
                Err(trouble) => match Self::handle(slf, trouble) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) if is_first => return Err(error),
                    // It may be told only once, so it waits while the messages are handed out.
                    Err(error) if error.is_instance_of::<PyException>(py) => {
                        Self::mine(slf)?.pending = Some(error);
                        break;
                    }
                    // An interrupt comes through at once, and what was taken is given back.
                    Err(error) => {
                        Self::mine(slf)?.place = begun;
                        return Err(error);
                    }
                },
            }
        }
        Ok(messages)
    }

    /// Gathers messages into Arrow columns; None when there is none now.
    fn _read_columns(
        slf: &Bound<'_, Self>,
        bytes_max: i64,
        columns: Vec<String>,
        partition: i32,
    ) -> PyResult<Option<Batch>> {
        let bytes_max = not_negative("bytes_max", bytes_max)?;
        let mut builder = Builder::new(&columns, partition, bytes_max)?;
        loop {
            let trouble = {
                let tailer = &mut *Self::mine(slf)?;
                slf.py().detach(|| tailer.gather(&mut builder, bytes_max))
            };
            match trouble {
                None => break,
                Some(_) if !builder.is_empty() => break,
                Some(trouble) if Self::handle(slf, trouble)? => {}
                Some(_) => return Ok(None),
            }
        }
        Ok(Some(builder.finish()))
    }

    /// Sleeps once: until there may be more to read, a signal comes or the slice is over.
    fn _wait(slf: &Bound<'_, Self>, slice_ns: u64) -> PyResult<()> {
        let py = slf.py();
        let (control, place) = {
            let tailer = slf.try_borrow()?;
            let control = tailer.control.as_ref().map(|control| control.clone_ref(py));
            let place = tailer.place.as_ref();
            (control, place.map(|place| (place.region.number, place.cursor.position)))
        };
        if let (Some(control), Some((number, position))) = (&control, place) {
            // It has read all there is for as long as it stands where the active segment ends.
            let has_more = || control.get().published(number) != Some(position);
            py.detach(|| control.get().sleep_for_append(slice_ns.min(SLEEP_NS), has_more));
        } else {
            py.detach(|| std::thread::sleep(Duration::from_nanos(slice_ns.min(POLL_NS))));
        }
        py.check_signals()
    }
}
