//! Flushing the active segment for everybody who waits, and raising the durable mark.

use crate::control::Control;
use crate::layout::*;
use crate::lock::Held;
use crate::os;
use crate::region::Region;
use std::io;
use std::sync::atomic::Ordering::*;

/// What came of trying to make everything durable that is published.
pub enum Flushed {
    /// Everything that was published when it began is durable.
    Done,
    /// Someone else flushes right now.
    Busy,
    /// Earlier segments, or the names of files, must be made durable before.
    OlderFirst,
    Failed(io::Error),
}

/// Flushes the active segment, unless somebody is at it.
pub fn flush_active(control: &Control, region: &Region) -> Flushed {
    let lock = control.lock_word(CONTROL_FLUSH_LOCK_AT);
    if lock.try_lock().is_none() {
        return Flushed::Busy;
    }
    let lock = Held(lock);
    let result = flush_locked(control, region);
    if let Flushed::Failed(error) = &result {
        let text = format!("flushing {} failed: {error}", region.path.display());
        control.set_poison(error.raw_os_error().unwrap_or(libc::EIO), &text);
    }
    lock.unlock();
    control.wake_flush_waiters();
    result
}

fn flush_locked(control: &Control, region: &Region) -> Flushed {
    let durable = control.u64_at(CONTROL_DURABLE_SEQUENCE_AT);
    let bank = control.active();
    // The next sequence is read before the number, so that it is this segment's if the number is;
    // whoever published a message below it had stored all of its bytes.
    let next = bank.word(BANK_NEXT_SEQUENCE).load(Acquire);
    if bank.number() != region.number
        || control.u64_at(CONTROL_DURABLE_NUMBER_AT).load(Acquire) != region.number
        || control.u64_at(CONTROL_NAMED_NUMBER_AT).load(Acquire) < region.number
    {
        return Flushed::OlderFirst;
    }
    if control.poison_errno() != 0 {
        return Flushed::Failed(io::Error::from_raw_os_error(control.poison_errno() as i32));
    }
    if durable.load(Acquire) < next {
        if let Err(error) = os::flush(region.data_fd()) {
            return Flushed::Failed(error);
        }
        durable.fetch_max(next, AcqRel);
    }
    Flushed::Done
}
