//! Claims about stepping through a segment: over damage, at its end, and in a file that was cut.

use crate::cursor::{Cursor, Step};
use crate::layout::*;
use crate::os;
use crate::region::Region;
use crate::scratch::*;
use std::fs::OpenOptions;

/// Cuts the file of a segment, as somebody who should not have might do.
fn cut(region: &Region, length: usize) {
    let path = format!("/proc/self/fd/{}", region.data_fd());
    let file = OpenOptions::new().write(true).open(path).expect("it is open already");
    file.set_len(length as u64).expect("a shorter file");
}

/// Reads on to the end: the ordinals of the messages, and how many were told to be lost.
fn read(cursor: &mut Cursor, region: &Region, page: &Page) -> (Vec<u64>, u64) {
    let (mut ordinals, mut lost) = (Vec::new(), 0);
    loop {
        let ordinal = cursor.ordinal;
        match cursor.step(region, Some(&page.control)) {
            Step::Frame(frame) => {
                cursor.pass(&frame);
                ordinals.push(ordinal);
            }
            Step::Lost(count) => lost += count,
            Step::Damage(_) => {
                cursor.pass_damage(region);
                lost += cursor.ordinal - ordinal;
            }
            Step::Unknown(_) | Step::End => return (ordinals, lost),
        }
    }
}

#[test]
fn damage_that_reached_the_end_is_counted_when_the_segment_grows() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"zero"]);
    flip(&region, append(&page, &region, &[b"one"]) + FRAME_TIMESTAMP_AT);
    flip(&region, append(&page, &region, &[b"two"]) + FRAME_TIMESTAMP_AT);
    let mut cursor = Cursor::new(SEGMENT_HEADER_BYTES, 0, SEGMENT_HEADER_BYTES, None);
    assert_eq!((vec![0], 0), read(&mut cursor, &region, &page));
    append(&page, &region, &[b"three"]);
    assert_eq!((vec![3], 2), read(&mut cursor, &region, &page));
}

#[test]
fn damage_that_reached_the_end_is_counted_when_the_segment_is_sealed() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"zero"]);
    flip(&region, append(&page, &region, &[b"one"]) + FRAME_TIMESTAMP_AT);
    let end = page.control.active().get(BANK_POSITION) as usize;
    let mut cursor = Cursor::new(SEGMENT_HEADER_BYTES, 0, SEGMENT_HEADER_BYTES, None);
    assert_eq!((vec![0], 0), read(&mut cursor, &region, &page));
    cursor.extend(end, Some(2));
    assert_eq!((vec![], 1), read(&mut cursor, &region, &page));
    assert_eq!((end, 2), (cursor.position, cursor.ordinal));
}

#[test]
fn nothing_is_read_behind_the_end_of_a_file_that_was_cut() {
    let (page, region) = (begun_page(), region());
    for _ in 0..200 {
        append(&page, &region, &[&[b'x'; 40]]);
    }
    cut(&region, 2 * SEGMENT_HEADER_BYTES);
    let mut cursor = Cursor::new(SEGMENT_HEADER_BYTES, 0, SEGMENT_HEADER_BYTES, None);
    assert_eq!((vec![], 0), read(&mut cursor, &region, &page));
    assert_eq!(2 * SEGMENT_HEADER_BYTES, region.within(CAPACITY));
    let mut cursor = Cursor::new(SEGMENT_HEADER_BYTES, 0, region.within(CAPACITY), Some(200));
    assert_eq!(64, read(&mut cursor, &region, &page).0.len());
}

#[test]
fn a_file_that_grew_is_asked_for_its_length_anew() {
    let region = region();
    cut(&region, 2 * SEGMENT_HEADER_BYTES);
    assert!(!region.reaches(CAPACITY));
    os::allocate(region.data_fd(), 0, CAPACITY).expect("some room for temporary files");
    assert!(region.reaches(CAPACITY));
}

#[test]
fn a_cursor_moves_to_a_message_of_its_segment_and_to_no_other() {
    let (page, region) = (begun_page(), region());
    let positions: Vec<usize> = (0..30).map(|_| append(&page, &region, &[b"message"])).collect();
    let mut cursor = Cursor::new(SEGMENT_HEADER_BYTES, 0, SEGMENT_HEADER_BYTES, None);
    for ordinal in [29, 0, 13] {
        assert!(cursor.seek(&region, Some(&page.control), ordinal));
        assert_eq!((positions[ordinal as usize], ordinal), (cursor.position, cursor.ordinal));
    }
    assert!(!cursor.seek(&region, Some(&page.control), 30));
    assert_eq!((positions[13], 13), (cursor.position, cursor.ordinal));
}
