//! The loop of a writing process's background thread, without Python's lock: it works ahead.
//!
//! It allocates blocks and touches pages ahead of the appenders, and flushes in batches.

use crate::control::Control;
use crate::flush::{flush_or_wait, Flushed};
use crate::layout::*;
use crate::lock::{Held, Stall};
use crate::mend::mend;
use crate::os;
use crate::region::Region;
use crate::segment::Segment;
use crate::wake::Bell;
use crate::writer::Writer;
use pyo3::prelude::*;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Pages are touched this far ahead of the last append: several milliseconds of the fastest writer.
const AHEAD_BYTES: usize = 32 << 20;
/// One touch covers this much, so that the loop sees to its other duties in between.
const TOUCH_BYTES: usize = 2 << 20;
/// Blocks are allocated in steps that double from the first to the last of these.
const STEP_BYTES_MIN: usize = 1 << 20;
const STEP_BYTES_MAX: usize = 64 << 20;
/// After a failed allocation the disk is asked again this much later.
const RETRY_NS: u64 = 100_000_000;
/// How often, and how far apart, the thread asks a busy appender for the lock.
const LOCK_TRIES: usize = 100;
const LOCK_NAP_US: u64 = 10;
/// While somebody else flushes, the thread looks this often whether it must do so itself.
const BUSY_NS: u64 = 1_000_000;

/// When the thread flushes by itself: never, if the interval is zero.
#[derive(Clone, Copy)]
struct Schedule {
    bytes: usize,
    interval_ns: u64,
}

/// The position from which on the next step of blocks is due: when less than half a step is left.
fn step_due_at(allocated: usize) -> usize {
    allocated.saturating_sub(allocated.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX) / 2)
}

/// Up to where blocks are allocated next; None when that is not due, or the segment has them all.
pub fn next_step(allocated: usize, position: usize, capacity: usize) -> Option<usize> {
    let step = allocated.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
    let to = allocated.saturating_add(step).min(capacity);
    (to > allocated && position >= step_due_at(allocated)).then_some(to)
}

/// What the thread remembers of one segment.
#[derive(Default)]
struct Progress {
    touched: usize,
    grown: usize,
    retry_at: u64,
    flushed: usize,
    dirty_since: Option<u64>,
    stall: Stall,
}

struct Loop<'a> {
    control: &'a Control,
    region: &'a Region,
    bell: &'a Bell,
    schedule: Schedule,
    progress: &'a mut Progress,
}

impl Loop<'_> {
    /// Works until the segment is not the active one any more, something needs Python, or the time
    /// is over.
    fn run(&mut self, closed: impl Fn() -> bool, until: u64) -> &'static str {
        let (control, number) = (self.control, self.region.number);
        loop {
            // Read before all that is looked at below, so that a ring in between ends the sleep.
            let seen = self.bell.seen();
            if closed() {
                return "closed";
            }
            let (Some(position), Some(allocated)) =
                (control.published(number), control.allocated(number))
            else {
                return "rolled";
            };
            let now = os::monotonic_ns();
            if now >= until {
                return "due";
            }
            if self.grow(position, allocated, now) || self.touch(position, allocated) {
                continue;
            }
            let flush_at = match self.flush_if_due(position, now) {
                Ok(flush_at) => flush_at,
                Err(reason) => return reason,
            };
            let wake_at = self.next_bell(position, allocated);
            let timeout = until.min(flush_at).saturating_sub(now).max(1000);
            self.bell.sleep(seen, wake_at, timeout, || {
                control.published(number).is_none_or(|end| end >= wake_at)
            });
        }
    }

    /// Allocates the next step when it is due; true if it did.
    fn grow(&mut self, position: usize, allocated: usize, now: u64) -> bool {
        let Some(to) = next_step(allocated, position, self.region.capacity) else {
            return false;
        };
        if now < self.progress.retry_at {
            return false;
        }
        if to > self.progress.grown {
            if os::allocate(self.region.data_fd(), allocated, to).is_err() {
                // The appender that runs out of room will meet the error itself and tell.
                self.progress.retry_at = now + RETRY_NS;
                return false;
            }
            self.progress.grown = to;
            os::stretch(self.region.data_fd(), to, self.region.capacity);
        }
        self.note_allocated(to)
    }

    /// The bank may meanwhile belong to another segment, so it is changed under the append lock
    /// only; false when a busy appender did not let this thread have it.
    fn note_allocated(&self, to: usize) -> bool {
        let lock = self.control.lock_word(CONTROL_APPEND_LOCK_AT);
        let mut taken = lock.try_lock();
        for _ in 0..LOCK_TRIES {
            if taken.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(LOCK_NAP_US));
            taken = lock.try_lock();
        }
        let Some(must_mend) = taken else {
            return false;
        };
        let lock = Held(lock);
        let bank = self.control.active();
        let is_active = bank.number() == self.region.number;
        if is_active {
            if must_mend {
                mend(self.control, self.region);
            }
            bank.word(BANK_ALLOCATED).fetch_max(to as u64, AcqRel);
        }
        if is_active || !must_mend {
            lock.unlock();
        } else {
            lock.unlock_unmended();
        }
        true
    }

    /// Touches the next stretch of pages; true if there was one.
    fn touch(&mut self, position: usize, allocated: usize) -> bool {
        let target = position.saturating_add(AHEAD_BYTES).min(allocated).min(self.region.capacity);
        let target = target & !4095;
        self.progress.touched = self.progress.touched.max(position & !4095);
        if self.progress.touched >= target {
            return false;
        }
        let to = (self.progress.touched + TOUCH_BYTES).min(target);
        self.region.map.populate(self.progress.touched, to);
        self.progress.touched = to;
        true
    }

    /// Flushes if the schedule says so, and tells when it next may have to.
    fn flush_if_due(&mut self, position: usize, now: u64) -> Result<u64, &'static str> {
        if self.schedule.interval_ns == 0 || position <= self.progress.flushed {
            self.progress.dirty_since = None;
            return Ok(u64::MAX);
        }
        let since = *self.progress.dirty_since.get_or_insert(now);
        let due = since.saturating_add(self.schedule.interval_ns);
        if now < due && position - self.progress.flushed < self.schedule.bytes {
            return Ok(due);
        }
        let (control, region) = (self.control, self.region);
        match flush_or_wait(control, region, &mut self.progress.stall, BUSY_NS, || false) {
            Flushed::Done => {
                self.progress.flushed = position;
                self.progress.dirty_since = None;
                Ok(u64::MAX)
            }
            Flushed::Busy => Ok(now),
            Flushed::OlderFirst => Err("flush"),
            // The log is poisoned now: there is nothing left to flush, and appenders know.
            Flushed::Failed(_) | Flushed::Poisoned => {
                self.progress.flushed = usize::MAX;
                Ok(u64::MAX)
            }
        }
    }

    /// The position at which an appender should ring.
    fn next_bell(&self, position: usize, allocated: usize) -> usize {
        let mut at = usize::MAX;
        if allocated < self.region.capacity {
            at = step_due_at(allocated);
        }
        // Where all blocks are touched, more can be done only after the next step.
        if self.progress.touched < allocated & !4095 {
            at = at.min((self.progress.touched + TOUCH_BYTES).saturating_sub(AHEAD_BYTES));
        }
        if self.schedule.interval_ns != 0 && self.progress.flushed != usize::MAX {
            at = at.min(match self.progress.dirty_since {
                Some(_) => self.progress.flushed.saturating_add(self.schedule.bytes),
                None => position,
            });
        }
        at.max(position.saturating_add(1))
    }
}

/// Works ahead of the appenders of one segment, for as long as it is the active one.
#[pyclass(frozen, module = "penstock._kernel")]
pub struct Keeper {
    writer: Py<Writer>,
    region: Arc<Region>,
    schedule: Schedule,
    progress: Mutex<Progress>,
}

#[pymethods]
impl Keeper {
    /// Flushes after so many bytes or so long; never, if the time is zero.
    #[new]
    fn new(
        writer: Py<Writer>,
        segment: &Segment,
        flush_bytes: usize,
        flush_interval_ns: u64,
    ) -> Keeper {
        Keeper {
            writer,
            region: segment.region.clone(),
            schedule: Schedule { bytes: flush_bytes, interval_ns: flush_interval_ns },
            progress: Mutex::default(),
        }
    }

    /// Works in the calling thread. Returns why it stopped: "rolled", "flush" (earlier segments
    /// must be flushed first), "due" (the time is over) or "closed".
    fn run(&self, py: Python<'_>, timeout_ns: u64) -> &'static str {
        let writer = self.writer.get();
        let control = writer.control.get();
        py.detach(|| {
            // Only a panic in an earlier run can have poisoned this, and it guards a mere cache.
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            let mut work = Loop {
                control,
                region: &self.region,
                bell: &writer.bell,
                schedule: self.schedule,
                progress: &mut progress,
            };
            let until = os::monotonic_ns().saturating_add(timeout_ns);
            work.run(|| writer.is_closed() || !control.is_attached(), until)
        })
    }
}
