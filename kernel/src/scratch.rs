//! Files, segments and control pages for the kernel's own tests, gone when a test ends.

use crate::control::Control;
use crate::frame::Checksum;
use crate::header::Facts;
use crate::layout::*;
use crate::map::Map;
use crate::os;
use crate::put::{put, Part, Put};
use crate::region::Region;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::*};

pub const NUMBER: u64 = 7;
pub const BASE: u64 = 1000;
pub const CAPACITY: usize = 64 << 10;
pub const INDEX_EVERY: u64 = 4;

/// An empty file that has no name any more.
pub fn file() -> File {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("penstock-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
    let path = std::env::temp_dir().join(name);
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a file");
    std::fs::remove_file(&path).expect("it is there");
    file
}

/// The same file opened once more, as another process would have it.
pub fn opened_again(file: &File) -> File {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().read(true).write(true).open(path).expect("it is open already")
}

/// A segment of zeros with an empty index.
pub fn region() -> Region {
    let data = file();
    os::allocate(data.as_raw_fd(), 0, CAPACITY).expect("some room for temporary files");
    let checksum = Checksum { kind: CHECKSUM_XXH3 as u32, salt: 0x5a17 };
    let facts = Facts {
        checksum,
        capacity: CAPACITY,
        index_every: INDEX_EVERY,
        number: NUMBER,
        base: BASE,
    };
    let index = Some(file().into());
    Region::over(PathBuf::from("scratch.data"), data.into(), index, &facts, true).expect("a map")
}

/// A control page, and the lock file that its handle has a slot in.
pub struct Page {
    pub file: File,
    pub lock: File,
    pub control: Control,
}

pub fn page() -> Page {
    let file = file();
    file.set_len(CONTROL_BYTES as u64).expect("room for a page");
    joined(file, self::file())
}

/// A second handle on the same page, as another process would have it.
pub fn company(page: &Page) -> Page {
    joined(opened_again(&page.file), opened_again(&page.lock))
}

fn joined(file: File, lock: File) -> Page {
    let map = Map::new(file.as_raw_fd(), CONTROL_BYTES, true).expect("a map");
    let control = Control::over(map, -1, 1_000_000_000);
    control.take_slot(lock.as_raw_fd(), 1).expect("a lock").expect("a free slot");
    Page { file, lock, control }
}

/// A page whose active segment is the empty scratch region.
pub fn begun_page() -> Page {
    let page = page();
    let mut words = [0; crate::bank::BANK_WORDS];
    for (which, value) in [
        (BANK_NUMBER, NUMBER),
        (BANK_BASE_SEQUENCE, BASE),
        (BANK_POSITION, SEGMENT_HEADER_BYTES as u64),
        (BANK_NEXT_SEQUENCE, BASE),
        (BANK_ALLOCATED, CAPACITY as u64),
        (BANK_CAPACITY, CAPACITY as u64),
        (BANK_ROLL_POSITION, CAPACITY as u64),
        (BANK_ROLL_SEQUENCE, u64::MAX),
        (BANK_ROLL_TIME, i64::MAX as u64),
    ] {
        words[which / 8] = value;
    }
    page.control.turn_bank(&words);
    page
}

/// Appends these payloads as one; returns where their first frame begins.
pub fn append(page: &Page, region: &Region, payloads: &[&[u8]]) -> usize {
    let at = page.control.active().get(BANK_POSITION) as usize;
    let parts: Vec<Part<'_>> =
        payloads.iter().map(|payload| Part { payload, attributes: &[] }).collect();
    assert!(matches!(put(&page.control, Some(region), &parts), Put::Done(..)));
    at
}

/// A segment with so many messages, and the position of each one and of their end.
pub fn filled(count: u64) -> (Region, Vec<usize>) {
    let (page, region) = (begun_page(), region());
    let mut positions: Vec<usize> =
        (0..count).map(|i| append(&page, &region, &[&vec![b'x'; i as usize % 50]])).collect();
    positions.push(page.control.active().get(BANK_POSITION) as usize);
    (region, positions)
}

/// Turns bits of one byte over.
pub fn flip(region: &Region, at: usize) {
    region.map.bytes_mut(at, at + 1)[0] ^= 0x55;
}
