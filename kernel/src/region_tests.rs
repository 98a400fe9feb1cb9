//! Claims about walking over frames and about finding the way behind damage.

use crate::layout::*;
use crate::scratch::*;

#[test]
fn a_walk_counts_every_frame_up_to_the_zeros() {
    let (region, positions) = filled(30);
    let end = region.walk(SEGMENT_HEADER_BYTES, 0, CAPACITY);
    assert_eq!((positions[30], 30, None), (end.position, end.ordinal, end.fault));
}

#[test]
fn a_walk_ends_where_damage_begins_and_says_so() {
    let (region, positions) = filled(30);
    flip(&region, positions[12] + FRAME_TIMESTAMP_AT);
    let end = region.walk(SEGMENT_HEADER_BYTES, 0, CAPACITY);
    assert_eq!((positions[12], 12), (end.position, end.ordinal));
    assert_eq!(Some("its checksum does not match"), end.fault);
}

#[test]
fn an_atomic_append_without_its_last_frame_does_not_count() {
    let (page, region) = (begun_page(), region());
    append(&page, &region, &[b"alone"]);
    let together = append(&page, &region, &[b"first", b"second", b"last"]);
    let end = page.control.active().get(BANK_POSITION) as usize;
    let last = end - crate::frame::frame_bytes(FRAME_HEAD_BYTES + 4);
    region.map.bytes_mut(last, end).fill(0);
    let walk = region.walk(SEGMENT_HEADER_BYTES, 0, CAPACITY);
    assert_eq!((together, 1, None), (walk.position, walk.ordinal, walk.fault));
}

#[test]
fn behind_damage_the_next_true_frame_tells_its_ordinal() {
    let (region, positions) = filled(30);
    for damaged in 0..29 {
        let kept = region.map.bytes(positions[damaged], positions[damaged + 1]).to_vec();
        for at in positions[damaged]..positions[damaged + 1] {
            flip(&region, at);
        }
        let found = region.resync(positions[damaged], damaged as u64, CAPACITY);
        assert_eq!(Some((positions[damaged + 1], damaged as u64 + 1)), found);
        region.map.bytes_mut(positions[damaged], positions[damaged + 1]).copy_from_slice(&kept);
    }
}

#[test]
fn behind_the_last_frame_there_is_no_way() {
    let (region, positions) = filled(3);
    assert_eq!(None, region.resync(positions[2], 2, CAPACITY));
}

#[test]
fn a_frame_copied_to_another_place_does_not_pass() {
    let (region, positions) = filled(30);
    let copied = region.map.bytes(positions[4], positions[5]).to_vec();
    let at = positions[29];
    region.map.bytes_mut(at, CAPACITY).fill(0);
    region.map.bytes_mut(at, at + copied.len()).copy_from_slice(&copied);
    let end = region.walk(SEGMENT_HEADER_BYTES, 0, CAPACITY);
    assert_eq!((at, 29), (end.position, end.ordinal));
    assert_eq!(None, region.resync(positions[28], 28, CAPACITY));
}

#[test]
fn numbers_from_nowhere_end_a_walk_at_once() {
    let (region, _) = filled(3);
    for (position, limit) in [(usize::MAX - 7, CAPACITY), (8192, 4096), (CAPACITY, usize::MAX)] {
        assert_eq!(u64::MAX, region.walk(position, u64::MAX, limit).ordinal);
        assert_eq!(None, region.resync(position, u64::MAX, limit));
    }
}

#[test]
fn every_flipped_byte_leaves_the_frames_behind_it_readable() {
    let (region, positions) = filled(12);
    for at in SEGMENT_HEADER_BYTES..positions[11] {
        flip(&region, at);
        let damaged = positions.iter().filter(|position| **position <= at).count() - 1;
        let end = region.walk(SEGMENT_HEADER_BYTES, 0, CAPACITY);
        assert_eq!(damaged as u64, end.ordinal);
        let found = region.resync(end.position, end.ordinal, CAPACITY);
        assert_eq!(Some((positions[damaged + 1], damaged as u64 + 1)), found);
        flip(&region, at);
    }
}
