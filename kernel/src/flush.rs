//! Flushing the active segment for everybody who waits, and raising the durable mark.

use crate::control::Control;
use crate::layout::*;
use crate::lock::{Held, Stall};
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
    /// A flush failed before, here or elsewhere, and is not tried again.
    Poisoned,
}

/// Flushes the active segment, unless somebody is at it.
pub fn flush_active(control: &Control, region: &Region) -> Flushed {
    let lock = control.lock_word(CONTROL_FLUSH_LOCK_AT);
    if lock.try_lock().is_none() {
        return Flushed::Busy;
    }
    let lock = Held(lock);
    let result = flush_now(control, region);
    lock.unlock();
    control.wake_flush_waiters();
    result
}

/// Flushes the active segment, or sleeps for a slice if somebody is at it. One who stands still is
/// not waited for: two may flush at once, since the mark only rises.
pub fn flush_or_wait(
    control: &Control,
    region: &Region,
    stall: &mut Stall,
    slice_ns: u64,
    is_done: impl Fn() -> bool,
) -> Flushed {
    let word = control.u32_at(CONTROL_DURABLE_WAKE_AT);
    let seen = word.load(Acquire);
    let flushed = flush_active(control, region);
    if !matches!(flushed, Flushed::Busy) || is_done() {
        return flushed;
    }
    let begun = os::monotonic_ns();
    os::futex_wait(word, seen, slice_ns);
    let owner = control.lock_word(CONTROL_FLUSH_LOCK_AT).owner();
    if stall.look(owner, 0, os::monotonic_ns() - begun) <= control.stall_ns {
        return Flushed::Busy;
    }
    let flushed = flush_now(control, region);
    control.wake_flush_waiters();
    flushed
}

/// Flushes and raises the mark; a failure poisons the log.
fn flush_now(control: &Control, region: &Region) -> Flushed {
    let result = flush_and_mark(control, region);
    if let Flushed::Failed(error) = &result {
        let text = format!("flushing {} failed: {error}", region.path.display());
        control.set_poison(error.raw_os_error().unwrap_or(libc::EIO), &text);
    }
    result
}

fn flush_and_mark(control: &Control, region: &Region) -> Flushed {
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
        return Flushed::Poisoned;
    }
    if durable.load(Acquire) < next {
        if let Err(error) = os::flush(region.data_fd()) {
            return Flushed::Failed(error);
        }
        raise_mark(control, next);
    }
    Flushed::Done
}

/// Raises the durable mark, and then its copy: one that was not reached yet is merely no proof.
pub fn raise_mark(control: &Control, sequence: u64) {
    let mark = control.u64_at(CONTROL_DURABLE_SEQUENCE_AT);
    mark.fetch_max(sequence, AcqRel);
    control.u64_at(CONTROL_DURABLE_COPY_AT).store(!mark.load(Acquire), Release);
}
