//! Claims about the blocks that are allocated ahead of the appenders.

use crate::keeper::next_step;
use crate::os;
use crate::scratch::file;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const MIB: usize = 1 << 20;

#[test]
fn blocks_double_from_one_mebibyte_to_steps_of_sixty_four() {
    let mut allocated = MIB;
    let mut steps = Vec::new();
    while let Some(to) = next_step(allocated, allocated, 512 * MIB) {
        steps.push(to / MIB);
        allocated = to;
    }
    assert_eq!(vec![2, 4, 8, 16, 32, 64, 128, 192, 256, 320, 384, 448, 512], steps);
}

#[test]
fn a_step_is_due_when_half_of_one_is_left() {
    assert_eq!(None, next_step(4 * MIB, 2 * MIB - 1, 64 * MIB));
    assert_eq!(Some(8 * MIB), next_step(4 * MIB, 2 * MIB, 64 * MIB));
}

#[test]
fn no_step_goes_beyond_the_capacity_or_the_largest_number() {
    assert_eq!(Some(5 * MIB), next_step(4 * MIB, 4 * MIB, 5 * MIB));
    assert_eq!(None, next_step(5 * MIB, 5 * MIB, 5 * MIB));
    assert_eq!(None, next_step(usize::MAX, usize::MAX, 5 * MIB));
}

#[test]
fn zeros_lengthen_a_file_and_never_replace_what_it_holds() {
    let file = file();
    file.write_all_at(&[7; 5000], 0).expect("room");
    os::lengthen_with_zeros(file.as_raw_fd(), 3 * MIB).expect("room");
    os::lengthen_with_zeros(file.as_raw_fd(), MIB).expect("room");
    let mut bytes = vec![1; 3 * MIB];
    file.read_exact_at(&mut bytes, 0).expect("so long");
    assert_eq!(3 * MIB as u64, file.metadata().expect("open").len());
    assert_eq!(bytes[..5000], [7; 5000]);
    assert!(bytes[5000..].iter().all(|byte| *byte == 0));
}
