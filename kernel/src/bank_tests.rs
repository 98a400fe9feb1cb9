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
            let words = page.control.bank_words();
            let appended = words[BANK_NEXT_SEQUENCE / 8] - BASE;
            let position = SEGMENT_HEADER_BYTES as u64 + appended * FRAME;
            assert_eq!(position, words[BANK_POSITION / 8]);
        }
    });
}

#[test]
fn they_are_so_wherever_an_appender_is_stopped() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"zero"]);
    let before = page.control.bank_words();
    append(&page, &region, &[b"one", b"two"]);
    let late = [BANK_POSITION, BANK_NEXT_SEQUENCE, BANK_LAST_TIMESTAMP, BANK_LAST_CHECK];
    for which in late {
        page.control.active().set(which, before[which / 8]);
        let words = page.control.bank_words();
        assert_eq!(before[BANK_POSITION / 8], words[BANK_POSITION / 8]);
        assert_eq!(before[BANK_NEXT_SEQUENCE / 8], words[BANK_NEXT_SEQUENCE / 8]);
    }
}
