//! Claims about what is read of a bank while appends go on: the words are those of one moment.

use crate::layout::*;
use crate::scratch::*;
use std::sync::atomic::{AtomicBool, Ordering::*};

#[test]
fn position_and_next_sequence_are_of_one_moment() {
    const FRAME: u64 = FRAME_BYTES_MIN as u64 + 8;
    let (page, region) = (begun_page(), region());
    let count = (CAPACITY - SEGMENT_HEADER_BYTES - SEAL_FRAME_BYTES) as u64 / FRAME;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..count {
                append(&page, &region, &[b"8 bytes."]);
            }
            is_over.store(true, SeqCst);
        });
        while !is_over.load(SeqCst) {
            let words = page.control.settled_words(std::thread::yield_now);
            let appended = words[BANK_NEXT_SEQUENCE / 8] - BASE;
            let position = SEGMENT_HEADER_BYTES as u64 + appended * FRAME;
            assert_eq!(position, words[BANK_POSITION / 8]);
        }
    });
}

#[test]
fn an_append_that_is_stopped_keeps_no_reader_waiting() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"one"]);
    let (words, is_quiet) = page.control.bank_words();
    assert!(is_quiet);
    page.control.active().set(BANK_INTENT_END, CAPACITY as u64);
    let settled = page.control.settled_words(|| {});
    assert_eq!(words[BANK_POSITION / 8], settled[BANK_POSITION / 8]);
}
