//! Claims about waiting for a flush: the one who flushes is waited for, but not for ever.

use crate::flush::{flush_or_wait, Flushed};
use crate::layout::*;
use crate::lock::Stall;
use crate::scratch::*;
use std::sync::atomic::Ordering::*;

const SLICE_NS: u64 = 1_000_000;

/// A page whose earlier segments are durable, and whose handle waits so long for a stopped one.
fn page_with_patience(stall_ns: u64) -> Page {
    let mut page = begun_page();
    page.control.stall_ns = stall_ns;
    page.control.u64_at(CONTROL_DURABLE_NUMBER_AT).store(NUMBER, SeqCst);
    page.control.u64_at(CONTROL_NAMED_NUMBER_AT).store(NUMBER, SeqCst);
    page
}

fn durable_sequence(page: &Page) -> u64 {
    page.control.u64_at(CONTROL_DURABLE_SEQUENCE_AT).load(SeqCst)
}

#[test]
fn somebody_who_flushes_is_waited_for() {
    let (page, region) = (page_with_patience(u64::MAX), region());
    append(&page, &region, &[b"one"]);
    let other = company(&page);
    assert!(other.control.lock_word(CONTROL_FLUSH_LOCK_AT).try_fast());
    let mut stall = Stall::default();
    for _ in 0..3 {
        let flushed = flush_or_wait(&page.control, &region, &mut stall, SLICE_NS, || false);
        assert!(matches!(flushed, Flushed::Busy));
    }
    assert_eq!(0, durable_sequence(&page));
    other.control.lock_word(CONTROL_FLUSH_LOCK_AT).unlock();
    let flushed = flush_or_wait(&page.control, &region, &mut stall, SLICE_NS, || false);
    assert!(matches!(flushed, Flushed::Done));
    assert_eq!(BASE + 1, durable_sequence(&page));
}

#[test]
fn nobody_waits_for_ever_for_a_stopped_flusher() {
    let (page, region) = (page_with_patience(0), region());
    append(&page, &region, &[b"one"]);
    let stopped = company(&page);
    assert!(stopped.control.lock_word(CONTROL_FLUSH_LOCK_AT).try_fast());
    let mut stall = Stall::default();
    let flushed = || flush_or_wait(&page.control, &region, &mut stall, SLICE_NS, || false);
    assert!(std::iter::repeat_with(flushed).take(3).any(|it| matches!(it, Flushed::Done)));
    assert_eq!(BASE + 1, durable_sequence(&page));
}
