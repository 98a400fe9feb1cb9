//! One segment file as it is mapped: walking over its frames, and finding the way behind damage.

use crate::errors::CorruptionError;
use crate::frame::*;
use crate::header::Facts;
use crate::layout::*;
use crate::map::Map;
use crate::os;
use pyo3::PyErr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A mapped segment and what its header says; shared by the appender, tailers and messages.
pub struct Region {
    pub map: Map,
    pub path: PathBuf,
    pub checksum: Checksum,
    pub capacity: usize,
    pub index_every: u64,
    pub number: u64,
    pub base: u64,
    data: OwnedFd,
    index: Option<OwnedFd>,
    /// The length of the file when it was last asked for.
    length_seen: AtomicUsize,
}

/// A search behind damage may check this many bytes for nothing, and this many for each byte it
/// passes. Bytes that look like the heads of large frames, one after the other, would else be
/// checked over and over again; honest ones come nowhere near.
const CHECKED_FREE: usize = 4 * PAYLOAD_BYTES_MAX;
const CHECKED_PER_BYTE: usize = 64;
/// Zeros are passed by the page, as the file has them.
const PAGE_BYTES: usize = 4096;

/// Where a walk over frames ended, and why.
pub struct Walk {
    pub position: usize,
    pub ordinal: u64,
    pub timestamp: i64,
    pub check: u64,
    pub marked: u64,
    pub sealed: bool,
    pub fault: Option<&'static str>,
    /// Where the next frame was looked for: behind the end if an atomic append is unfinished there.
    pub stop: (usize, u64),
}

impl Region {
    /// Maps a segment file whose header says this.
    pub fn over(
        path: PathBuf,
        data: OwnedFd,
        index: Option<OwnedFd>,
        facts: &Facts,
        writable: bool,
    ) -> io::Result<Region> {
        Ok(Region {
            map: Map::new(data.as_raw_fd(), facts.capacity, writable)?,
            path,
            checksum: facts.checksum,
            capacity: facts.capacity,
            index_every: facts.index_every,
            number: facts.number,
            base: facts.base,
            data,
            index,
            length_seen: AtomicUsize::new(0),
        })
    }

    pub fn data_fd(&self) -> RawFd {
        self.data.as_raw_fd()
    }

    pub fn index_fd(&self) -> Option<RawFd> {
        self.index.as_ref().map(OwnedFd::as_raw_fd)
    }

    /// The limit, cut to where the file ends now: a mapped byte behind that ends the process when
    /// it is touched, and a limit may come from a page or a header that is older than the file.
    pub fn within(&self, limit: usize) -> usize {
        let length = os::file_bytes(self.data_fd()).unwrap_or(0);
        self.length_seen.store(length, Relaxed);
        limit.min(self.capacity).min(length)
    }

    /// Whether the file is this long; the system is asked only when it was shorter the last time.
    #[inline]
    pub fn reaches(&self, end: usize) -> bool {
        end <= self.length_seen.load(Relaxed) || self.within(end) == end
    }

    /// The sequence of the message with this ordinal.
    #[inline]
    pub fn sequence_of(&self, ordinal: u64) -> u64 {
        self.base.saturating_add(ordinal)
    }

    /// The bytes from here to the limit; none when the limit lies before, as numbers from a damaged
    /// file may have it.
    #[inline]
    pub fn rest(&self, position: usize, limit: usize) -> &[u8] {
        let limit = limit.min(self.capacity);
        self.map.bytes(position.min(limit), limit)
    }

    pub fn corruption(
        &self,
        position: usize,
        ordinal: u64,
        reason: &str,
        next: Option<u64>,
    ) -> PyErr {
        let sequence = self.sequence_of(ordinal);
        CorruptionError::new_err((self.path.clone(), position, sequence, reason.to_owned(), next))
    }

    /// Checks frame after frame. It ends at a seal, at zeros, at damage or at `limit`; an atomic
    /// append whose last frame is missing does not count: the walk ends where that append began.
    pub fn walk(&self, mut position: usize, mut ordinal: u64, limit: usize) -> Walk {
        let mut end = Walk {
            position,
            ordinal,
            timestamp: 0,
            check: 0,
            marked: 0,
            sealed: false,
            fault: None,
            stop: (position, ordinal),
        };
        loop {
            end.stop = (position, ordinal);
            match decode(self.rest(position, limit), self.checksum, ordinal) {
                Ok(Some(frame)) if frame.head.kind as usize == KIND_SEAL => {
                    end.sealed = end.position == position;
                    return end;
                }
                Ok(Some(frame)) => {
                    let marked = attribute_u64(frame.attributes(), ATTRIBUTE_DURABLE);
                    end.marked = end.marked.max(marked.unwrap_or(0));
                    position += frame.bytes.len();
                    // A caller may begin at any ordinal, and its check can be made to fit.
                    ordinal = ordinal.wrapping_add(1);
                    if !frame.head.more_follows() {
                        end.position = position;
                        end.ordinal = ordinal;
                        end.timestamp = frame.head.timestamp;
                        end.check = frame.check();
                    }
                }
                Ok(None) => return end,
                Err(fault) => {
                    end.fault = Some(fault);
                    return end;
                }
            }
        }
    }

    /// The next true frame behind damage and its ordinal, which its check reveals.
    pub fn resync(&self, from: usize, ordinal: u64, limit: usize) -> Option<(usize, u64)> {
        let mut position = from.saturating_add(FRAME_ALIGNMENT);
        let mut left = CHECKED_FREE;
        loop {
            let bytes = self.rest(position, limit);
            if bytes.len() < FRAME_BYTES_MIN {
                return None;
            }
            if position % PAGE_BYTES == 0 && bytes.iter().take(PAGE_BYTES).all(|byte| *byte == 0) {
                // Behind the blocks there may be nothing but a hole up to the file's length.
                position = os::next_data(self.data_fd(), position + PAGE_BYTES)?;
                continue;
            }
            let candidate = peek(bytes).ok().flatten();
            if let Some(frame) = candidate.filter(|frame| frame.bytes.len() <= left) {
                left -= frame.bytes.len();
                let found = frame.ordinal(self.checksum);
                // The bytes passed hold one damaged frame, or as many as the least ones would be.
                let passed = ((position - from) / FRAME_BYTES_MIN).max(1) as u64;
                if found >= ordinal && found - ordinal <= passed {
                    return Some((position, found));
                }
            }
            position += FRAME_ALIGNMENT;
            left += FRAME_ALIGNMENT * CHECKED_PER_BYTE;
        }
    }
}
