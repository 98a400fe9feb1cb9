//! Claims about single frames: they come back as written, and no damage passes.

use crate::frame::*;
use crate::layout::*;

const CHECKSUM: Checksum = Checksum { kind: CHECKSUM_XXH3 as u32, salt: 77 };

fn frame_of(payload: &[u8], ordinal: u64, checksum: Checksum) -> Vec<u8> {
    let head = Head::new(KIND_MESSAGE, 0, payload.len(), 5);
    let mut bytes = vec![0; head.frame_bytes()];
    encode(&mut bytes, &head, [&[], &[]], payload, checksum, ordinal);
    write_u64(&mut bytes, 0, head.word());
    bytes
}

#[test]
fn a_frame_comes_back_as_it_was_written() {
    for kind in [CHECKSUM_XXH3, CHECKSUM_CRC64_NVME] {
        let checksum = Checksum { kind: kind as u32, salt: 9 };
        for size in [0, 1, 7, 8, 9, 100, 5000] {
            let payload: Vec<u8> = (0..size).map(|i| i as u8).collect();
            let bytes = frame_of(&payload, 3, checksum);
            let frame = decode(&bytes, checksum, 3).unwrap().unwrap();
            assert_eq!(payload, frame.payload());
            assert_eq!(3, frame.ordinal(checksum));
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = frame_of(b"forty-two", 3, CHECKSUM);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(!matches!(decode(&flipped, CHECKSUM, 3), Ok(Some(_))));
    }
}

#[test]
fn a_frame_at_another_ordinal_or_salt_does_not_pass() {
    let bytes = frame_of(b"forty-two", 3, CHECKSUM);
    assert!(decode(&bytes, CHECKSUM, 4).is_err());
    let other = Checksum { salt: 78, ..CHECKSUM };
    assert!(decode(&bytes, other, 3).is_err());
}

#[test]
fn an_unknown_critical_attribute_is_found_and_any_other_is_kept() {
    let mut attributes = Vec::new();
    push_attribute(&mut attributes, 99, b"later");
    assert_eq!(None, unknown_critical(&attributes));
    push_attribute(&mut attributes, ATTRIBUTE_CRITICAL | 99, b"must know");
    assert_eq!(Some(ATTRIBUTE_CRITICAL | 99), unknown_critical(&attributes));
    assert_eq!(Some(&b"later"[..]), attribute(&attributes, 99));
}
