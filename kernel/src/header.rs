//! The headers of segment and index files: made and read here, decided on in Python.

use crate::errors::{bad_header, FormatVersionError};
use crate::frame::*;
use crate::layout::*;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};

/// No log reaches a sequence beyond this, whatever a damaged file says: sequences are handed out as
/// signed numbers too, and no sum of them may overflow.
const SEQUENCE_MAX: u64 = 1 << 62;

/// What must be known of a segment before its frames can be read.
pub struct Facts {
    pub checksum: Checksum,
    pub capacity: usize,
    pub index_every: u64,
    pub number: u64,
    pub base: u64,
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A header's check: the segment's own kind of checksum over the part, without salt.
fn part_check(kind: u32, part: &[u8]) -> u64 {
    Checksum { kind, salt: 0 }.of(read_u64(part, 0), &part[8..])
}

/// The first part of a segment's header: all that is known when the file is made.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn prepared_header<'py>(
    py: Python<'py>,
    checksum: u32,
    queue_id: &[u8],
    salt: u64,
    capacity: u64,
    index_every: u64,
    created_at: i64,
    boot_id: &[u8],
) -> Bound<'py, PyBytes> {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    put(&mut header, SEGMENT_MAGIC_AT, &SEGMENT_MAGIC);
    put(&mut header, SEGMENT_VERSION_AT, &(FORMAT_VERSION as u32).to_le_bytes());
    put(&mut header, SEGMENT_CHECKSUM_AT, &checksum.to_le_bytes());
    put(&mut header, SEGMENT_QUEUE_ID_AT, queue_id);
    write_u64(&mut header, SEGMENT_SALT_AT, salt);
    write_u64(&mut header, SEGMENT_CAPACITY_AT, capacity);
    write_u64(&mut header, SEGMENT_INDEX_EVERY_AT, index_every);
    write_u64(&mut header, SEGMENT_CREATED_AT, created_at as u64);
    put(&mut header, SEGMENT_BOOT_ID_AT, boot_id);
    let check = part_check(checksum, &header[..SEGMENT_PREPARED_CHECK_AT]);
    write_u64(&mut header, SEGMENT_PREPARED_CHECK_AT, check);
    PyBytes::new(py, &header)
}

/// The second part, written where the first ends when the segment becomes the active one.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn begun_header<'py>(
    py: Python<'py>,
    checksum: u32,
    number: u64,
    base_sequence: u64,
    begun_at: i64,
    reason: u64,
    previous_number: u64,
    previous_end_position: u64,
    previous_end_sequence: u64,
    previous_check: u64,
    durable_sequence: u64,
) -> Bound<'py, PyBytes> {
    let mut part = [0; SEGMENT_BEGUN_CHECK_AT + 8 - SEGMENT_NUMBER_AT];
    for (at, value) in [
        (SEGMENT_NUMBER_AT, number),
        (SEGMENT_BASE_SEQUENCE_AT, base_sequence),
        (SEGMENT_BEGUN_AT, begun_at as u64),
        (SEGMENT_REASON_AT, reason),
        (SEGMENT_PREVIOUS_NUMBER_AT, previous_number),
        (SEGMENT_PREVIOUS_END_POSITION_AT, previous_end_position),
        (SEGMENT_PREVIOUS_END_SEQUENCE_AT, previous_end_sequence),
        (SEGMENT_PREVIOUS_CHECK_AT, previous_check),
        (SEGMENT_DURABLE_SEQUENCE_AT, durable_sequence),
    ] {
        write_u64(&mut part, at - SEGMENT_NUMBER_AT, value);
    }
    let check_at = SEGMENT_BEGUN_CHECK_AT - SEGMENT_NUMBER_AT;
    let check = part_check(checksum, &part[..check_at]);
    write_u64(&mut part, check_at, check);
    PyBytes::new(py, &part)
}

/// The header of an index file.
#[pyfunction]
pub fn index_header<'py>(
    py: Python<'py>,
    checksum: u32,
    queue_id: &[u8],
    number: u64,
    base_sequence: u64,
    salt: u64,
    index_every: u64,
) -> Bound<'py, PyBytes> {
    let mut header = [0; INDEX_HEADER_BYTES];
    put(&mut header, INDEX_MAGIC_AT, &INDEX_MAGIC);
    put(&mut header, INDEX_VERSION_AT, &(FORMAT_VERSION as u32).to_le_bytes());
    put(&mut header, INDEX_QUEUE_ID_AT, queue_id);
    write_u64(&mut header, INDEX_NUMBER_AT, number);
    write_u64(&mut header, INDEX_BASE_SEQUENCE_AT, base_sequence);
    write_u64(&mut header, INDEX_SALT_AT, salt);
    write_u64(&mut header, INDEX_EVERY_AT, index_every);
    let check = part_check(checksum, &header[..INDEX_HEADER_CHECK_AT]);
    write_u64(&mut header, INDEX_HEADER_CHECK_AT, check);
    PyBytes::new(py, &header)
}

/// Whether the second part of a segment's header was written whole.
pub fn is_begun(header: &[u8], kind: u32) -> bool {
    part_check(kind, &header[SEGMENT_NUMBER_AT..SEGMENT_BEGUN_CHECK_AT])
        == read_u64(header, SEGMENT_BEGUN_CHECK_AT)
}

/// The checked facts of a header that is prepared and begun; otherwise what is wrong with it.
pub fn read(path: &Path, header: &[u8]) -> PyResult<Facts> {
    let facts = read_prepared(path, header)?;
    if !is_begun(header, facts.checksum.kind) {
        let reason = "the second part of its header is damaged or was never written";
        return Err(bad_header(path, reason));
    }
    if facts.base > SEQUENCE_MAX {
        return Err(bad_header(path, "its header begins at a sequence that no log reaches"));
    }
    Ok(facts)
}

fn read_prepared(path: &Path, header: &[u8]) -> PyResult<Facts> {
    if header.len() < SEGMENT_HEADER_BYTES {
        return Err(bad_header(path, "the file is shorter than a segment's header"));
    }
    if header[..8] != SEGMENT_MAGIC {
        return Err(bad_header(path, "it does not begin as a segment does"));
    }
    let version = read_u32(header, SEGMENT_VERSION_AT);
    if version as usize != FORMAT_VERSION {
        return Err(FormatVersionError::new_err((path.to_path_buf(), version, FORMAT_VERSION)));
    }
    let kind = read_u32(header, SEGMENT_CHECKSUM_AT);
    if kind as usize != CHECKSUM_XXH3 && kind as usize != CHECKSUM_CRC64_NVME {
        return Err(bad_header(path, "its header names no checksum that is known"));
    }
    let check = part_check(kind, &header[..SEGMENT_PREPARED_CHECK_AT]);
    if check != read_u64(header, SEGMENT_PREPARED_CHECK_AT) {
        return Err(bad_header(path, "the checksum of its header does not match"));
    }
    let capacity = read_u64(header, SEGMENT_CAPACITY_AT) as usize;
    let index_every = read_u64(header, SEGMENT_INDEX_EVERY_AT);
    if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&capacity) || index_every == 0 {
        return Err(bad_header(path, "its header holds a size that no segment has"));
    }
    Ok(Facts {
        checksum: Checksum { kind, salt: read_u64(header, SEGMENT_SALT_AT) },
        capacity,
        index_every,
        number: read_u64(header, SEGMENT_NUMBER_AT),
        base: read_u64(header, SEGMENT_BASE_SEQUENCE_AT),
    })
}

/// The capacity of a segment that is made but perhaps not begun; errors as for any segment.
#[pyfunction]
pub fn prepared_capacity(path: PathBuf, header: &[u8]) -> PyResult<usize> {
    Ok(read_prepared(&path, header)?.capacity)
}
