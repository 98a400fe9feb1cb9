//! Claims about what is left of an append whose writer died: all of it or nothing.

use crate::frame::*;
use crate::layout::*;
use crate::mend::mend;
use crate::put::{put, Part, Put};
use crate::region::Region;
use crate::scratch::*;

/// The bank's words that an append changes, as they are now.
fn words_of(page: &Page) -> Vec<u64> {
    page.control.bank_words().to_vec()
}

/// Puts words of the bank back as they were before an append.
fn restore(page: &Page, words: &[u64], which: &[usize]) {
    for at in which {
        page.control.active().set(*at, words[at / 8]);
    }
}

fn place(page: &Page) -> (usize, u64) {
    let bank = page.control.active();
    (bank.get(BANK_POSITION) as usize, bank.get(BANK_NEXT_SEQUENCE))
}

fn is_zeros(region: &Region, from: usize) -> bool {
    region.map.bytes(from, CAPACITY).iter().all(|byte| *byte == 0)
}

#[test]
fn where_nothing_was_written_nothing_is_changed() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"one"]);
    let words = words_of(&page);
    mend(&page.control, &region);
    assert_eq!(words, words_of(&page));
}

#[test]
fn a_half_written_frame_is_zeroed_wherever_its_writer_died() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"one"]);
    let before = words_of(&page);
    let at = append(&page, &region, &[b"a payload of several words", b"and", b"more"]);
    let (end, _) = place(&page);
    let whole = region.map.bytes(at, end).to_vec();
    for written in 0..whole.len() {
        restore(&page, &before, &[BANK_POSITION, BANK_NEXT_SEQUENCE]);
        region.map.bytes_mut(at, end).fill(0);
        region.map.bytes_mut(at, at + written).copy_from_slice(&whole[..written]);
        // The first word is the one that is stored last.
        region.map.bytes_mut(at, at + 8).fill(0);
        mend(&page.control, &region);
        assert!(is_zeros(&region, at));
        assert_eq!((at, BASE + 1), place(&page));
    }
}

#[test]
fn what_was_published_counts_wherever_its_writer_died_after_that() {
    let late = [
        BANK_POSITION,
        BANK_NEXT_SEQUENCE,
        BANK_MARKED_SEQUENCE,
        BANK_LAST_TIMESTAMP,
        BANK_LAST_CHECK,
    ];
    for payloads in [&[&b"one"[..]][..], &[b"first", b"second", b"last"]] {
        for undone in 0..=late.len() {
            let (page, region) = (begun_page(), region());
            append(&page, &region, &[b"zero"]);
            let before = words_of(&page);
            append(&page, &region, payloads);
            let after = words_of(&page);
            restore(&page, &before, &late[..undone]);
            mend(&page.control, &region);
            let marked = BANK_MARKED_SEQUENCE / 8;
            let mended = words_of(&page);
            assert_eq!(after[..marked], mended[..marked]);
            assert_eq!(after[marked + 1..], mended[marked + 1..]);
        }
    }
}

#[test]
fn the_first_message_of_a_segment_leaves_its_time_even_if_its_writer_died() {
    let (page, region) = (begun_page(), region());
    let before = words_of(&page);
    append(&page, &region, &[b"one"]);
    restore(&page, &before, &[BANK_POSITION, BANK_NEXT_SEQUENCE, BANK_LAST_TIMESTAMP]);
    mend(&page.control, &region);
    let bank = page.control.active();
    assert_eq!(bank.get(BANK_LAST_TIMESTAMP), bank.get(BANK_FIRST_TIMESTAMP));
    assert_ne!(0, bank.get(BANK_FIRST_TIMESTAMP));
}

#[test]
fn a_check_is_noted_only_once_its_message_is_published() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"one"]);
    let check = page.control.active().get(BANK_LAST_CHECK);
    let at = append(&page, &region, &[b"two"]);
    let words = words_of(&page);
    assert_ne!(check, words[BANK_LAST_CHECK / 8]);
    assert_eq!(words[BANK_LAST_CHECK / 8], region.walk(at, 1, CAPACITY).check);
}

#[test]
fn a_torn_atomic_append_does_not_count_and_is_not_written_over() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"zero"]);
    let before = words_of(&page);
    let at = append(&page, &region, &[b"first", b"second", b"last"]);
    let (end, _) = place(&page);
    restore(&page, &before, &[BANK_POSITION, BANK_NEXT_SEQUENCE]);
    region.map.bytes_mut(end - frame_bytes(FRAME_HEAD_BYTES + 4), end).fill(0);
    mend(&page.control, &region);
    assert_eq!((at, BASE + 1), place(&page));
    let part = Part { payload: b"next", attributes: &[] };
    assert!(matches!(put(&page.control, Some(&region), &[part]), Put::NoRoom(_)));
}

#[test]
fn a_damaged_frame_cannot_move_the_next_sequence() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"zero"]);
    let before = words_of(&page);
    let at = append(&page, &region, &[b"damaged"]);
    let (end, _) = place(&page);
    for flipped in at + 8..end {
        restore(&page, &before, &[BANK_POSITION, BANK_NEXT_SEQUENCE]);
        flip(&region, flipped);
        mend(&page.control, &region);
        flip(&region, flipped);
        assert_eq!((at, BASE + 1), place(&page));
    }
}

#[test]
fn a_seal_is_not_taken_for_a_message() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"zero"]);
    let (at, next) = place(&page);
    let head = Head::new(KIND_SEAL, 0, SEAL_CONTENT_BYTES, 5);
    let target = region.map.bytes_mut(at, at + SEAL_FRAME_BYTES);
    encode(target, &head, [&[], &[]], &[1; SEAL_CONTENT_BYTES], region.checksum, 1);
    write_u64(region.map.bytes_mut(at, at + 8), 0, head.word());
    mend(&page.control, &region);
    assert_eq!((at, next), place(&page));
}
