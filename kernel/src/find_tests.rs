//! Claims about the sparse index: true entries shorten the way, and others lead nobody astray.

use crate::layout::*;
use crate::os;
use crate::region::Region;
use crate::scratch::*;

fn write_entry(region: &Region, k: u64, sequence: u64, position: usize) {
    let mut entry = sequence.to_le_bytes().to_vec();
    entry.extend_from_slice(&(position as u64).to_le_bytes());
    let at = INDEX_HEADER_BYTES + k as usize * INDEX_ENTRY_BYTES;
    os::write_at(region.index_fd().expect("an index"), &entry, at).expect("room");
}

#[test]
fn every_message_is_found_with_the_index() {
    let (region, positions) = filled(30);
    for (ordinal, position) in positions.iter().enumerate() {
        assert_eq!((*position, ordinal as u64), region.locate(ordinal as u64, positions[30]));
    }
}

#[test]
fn the_nearest_true_entry_before_an_ordinal_is_taken() {
    let (region, positions) = filled(30);
    assert_eq!((positions[8], 8), region.indexed_before(11, positions[30]));
    assert_eq!((positions[12], 12), region.indexed_before(12, positions[30]));
    assert_eq!((SEGMENT_HEADER_BYTES, 0), region.indexed_before(3, positions[30]));
}

#[test]
fn an_entry_that_is_not_true_is_passed_over() {
    let (region, positions) = filled(30);
    let beyond = 1 << 40;
    for (sequence, position) in [
        (0, 0),
        (BASE + 12, positions[13]),
        (BASE + 12, positions[12] + 8),
        (BASE + 12, beyond),
        (BASE + 12, usize::MAX),
        (BASE + 12, 1),
        (BASE + 13, positions[12]),
    ] {
        write_entry(&region, 3, sequence, position);
        assert_eq!((positions[8], 8), region.indexed_before(14, positions[30]));
        assert_eq!((positions[14], 14), region.locate(14, positions[30]));
    }
}

#[test]
fn an_entry_whose_frame_is_damaged_is_passed_over() {
    let (region, positions) = filled(30);
    flip(&region, positions[12] + FRAME_TIMESTAMP_AT);
    assert_eq!((positions[8], 8), region.indexed_before(14, positions[30]));
    assert_eq!((positions[14], 14), region.locate(14, positions[30]));
}

#[test]
fn a_length_that_lies_does_not_mislead_the_search() {
    let (region, positions) = filled(30);
    for flipped in positions[12]..positions[12] + 4 {
        flip(&region, flipped);
        assert_eq!((positions[12], 12), region.locate(12, positions[30]));
        for (ordinal, position) in positions.iter().enumerate().skip(13) {
            assert_eq!((*position, ordinal as u64), region.locate(ordinal as u64, positions[30]));
        }
        flip(&region, flipped);
    }
}

#[test]
fn an_ordinal_that_no_segment_has_leads_to_the_end() {
    let (region, positions) = filled(30);
    assert_eq!((positions[30], 30), region.locate(u64::MAX, positions[30]));
}

#[test]
fn an_index_made_anew_is_the_one_the_appends_wrote() {
    let (region, positions) = filled(30);
    let entries = region.index_entries(positions[30]);
    let mut written = vec![0; entries.len()];
    let index = region.index_fd().expect("an index");
    assert!(os::read_at(index, &mut written, INDEX_HEADER_BYTES));
    assert_eq!(written, entries);
    assert_eq!(8 * INDEX_ENTRY_BYTES, entries.len());
}

#[test]
fn an_index_made_anew_goes_on_behind_damage() {
    let (region, positions) = filled(30);
    let whole = region.index_entries(positions[30]);
    for at in positions[12]..positions[13] {
        flip(&region, at);
    }
    let entries = region.index_entries(positions[30]);
    assert_eq!(whole[..3 * INDEX_ENTRY_BYTES], entries[..3 * INDEX_ENTRY_BYTES]);
    assert_eq!([0; INDEX_ENTRY_BYTES], entries[3 * INDEX_ENTRY_BYTES..4 * INDEX_ENTRY_BYTES]);
    assert_eq!(whole[4 * INDEX_ENTRY_BYTES..], entries[4 * INDEX_ENTRY_BYTES..]);
}

#[test]
fn a_time_is_found_at_the_first_message_that_has_it() {
    let (region, positions) = filled(30);
    let time_of = |at: usize| {
        let found = crate::frame::peek(region.rest(at, CAPACITY));
        found.expect("no damage").expect("a frame").head.timestamp
    };
    for position in &positions[..30] {
        let time = time_of(*position);
        let first = positions[..30].iter().position(|at| time_of(*at) >= time).expect("itself");
        let expected = (positions[first], first as u64);
        assert_eq!(expected, region.locate_time(time, positions[30], 30));
    }
    assert_eq!((positions[30], 30), region.locate_time(i64::MAX, positions[30], 30));
}
