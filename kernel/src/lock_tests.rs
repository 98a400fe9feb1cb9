//! Claims about the lock word: one owner at a time, death frees it, and closing never doubles it.

use crate::layout::*;
use crate::lock::{Held, Stall};
use crate::scratch::*;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// A word that no other test and no part of the kernel locks.
const AT: usize = CONTROL_APPEND_LOCK_AT;

#[test]
fn a_free_word_is_taken_at_once_and_only_once() {
    let page = page();
    let word = page.control.lock_word(AT);
    assert!(word.try_fast());
    assert!(!word.try_fast());
    assert_eq!(None, word.try_lock());
    word.unlock();
    assert_eq!(Some(false), word.try_lock());
}

#[test]
fn of_many_threads_and_handles_one_at_a_time_has_the_word() {
    const TURNS: u64 = 2000;
    let first = page();
    let second = company(&first);
    // Added to in two steps, so that two owners at once would lose counts.
    let count = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for handle in [&first, &second, &first, &second] {
            let count = &count;
            scope.spawn(move || {
                let word = handle.control.lock_word(AT);
                for _ in 0..TURNS {
                    while word.try_lock().is_none() {
                        word.sleep();
                    }
                    let before = count.load(Relaxed);
                    std::hint::spin_loop();
                    count.store(before + 1, Relaxed);
                    word.unlock();
                }
            });
        }
    });
    assert_eq!(4 * TURNS, count.load(Relaxed));
}

#[test]
fn a_word_whose_owner_died_is_taken_over_to_be_mended() {
    let survivor = page();
    let dead = company(&survivor);
    assert!(dead.control.lock_word(AT).try_fast());
    assert_eq!(None, survivor.control.lock_word(AT).try_lock());
    drop(dead);
    assert_eq!(Some(true), survivor.control.lock_word(AT).try_lock());
}

#[test]
fn who_claims_the_slot_of_a_dead_owner_leaves_its_word_to_be_mended() {
    let survivor = page();
    let dead = company(&survivor);
    assert!(dead.control.lock_word(AT).try_fast());
    drop(dead);
    let heir = company(&survivor);
    assert!(!heir.control.lock_word(AT).try_fast());
    assert_eq!(Some(true), heir.control.lock_word(AT).try_lock());
}

#[test]
fn a_panic_leaves_the_word_free_and_to_be_mended() {
    let page = page();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        assert!(page.control.lock_word(AT).try_fast());
        let _held = Held(page.control.lock_word(AT));
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(Some(true), page.control.lock_word(AT).try_lock());
}

#[test]
fn a_closed_handle_takes_no_lock() {
    let page = page();
    page.control.leave_slot();
    assert!(!page.control.lock_word(AT).try_fast());
    assert_eq!(None, page.control.lock_word(AT).try_lock());
}

#[test]
fn closing_waits_for_the_thread_that_is_inside() {
    let page = page();
    let left = AtomicU64::new(0);
    assert!(page.control.lock_word(AT).try_fast());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            page.control.leave_slot();
            left.store(1, SeqCst);
        });
        while page.control.owner.load(SeqCst) != 0 {
            std::hint::spin_loop();
        }
        assert_eq!(0, left.load(SeqCst));
        page.control.lock_word(AT).unlock();
    });
    assert_eq!(1, left.load(SeqCst));
}

#[test]
fn only_the_time_that_one_owner_was_waited_for_counts() {
    let mut stall = Stall::default();
    assert_eq!(0, stall.look(3, 0, 1000));
    assert_eq!(1000, stall.look(3, 0, 1000));
    assert_eq!(3000, stall.look(3, 0, 2000));
    assert_eq!(0, stall.look(4, 0, 2000));
    assert_eq!(2000, stall.look(4, 0, 2000));
    assert_eq!(0, stall.look(0, 0, 2000));
    assert_eq!(0, stall.look(0, 0, 2000));
    assert_eq!(0, stall.look(4, 0, 2000));
}

#[test]
fn a_waiter_that_stood_still_itself_counts_one_step() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let mut stall = Stall::default();
    stall.look(3, 0, 1000);
    assert!(stall.look(3, 0, HOUR_NS) < HOUR_NS / 10_000);
}
