//! A file mapped into memory, its bytes and words behind bounds checks.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Address space over a file. It may be longer than the file: only what lies inside the file is
/// touched, and that is for the caller to know.
pub struct Map {
    start: *mut u8,
    pub length: usize,
    pub writable: bool,
}

// SAFETY: a Map is shared memory. What several threads or processes write in it is written through
// the atomics or under a lock word that lives in it; the pointer itself never changes.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    pub fn new(fd: RawFd, length: usize, writable: bool) -> io::Result<Map> {
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Map { start: start.cast(), length, writable })
    }

    /// Bytes to read. Others may be writing behind `to`, never between `from` and `to`.
    #[inline]
    pub fn bytes(&self, from: usize, to: usize) -> &[u8] {
        assert!(from <= to && to <= self.length);
        // SAFETY: inside the mapping by the line above; the caller asks only for bytes the file
        // has.
        unsafe { std::slice::from_raw_parts(self.start.add(from), to - from) }
    }

    /// Bytes to write, for the holder of the lock that guards them.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub fn bytes_mut(&self, from: usize, to: usize) -> &mut [u8] {
        assert!(self.writable && from <= to && to <= self.length);
        // SAFETY: inside the mapping; the lock makes its holder the only one to write there, and
        // nobody reads these bytes before they are published.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), to - from) }
    }

    #[inline]
    pub fn u64_at(&self, at: usize) -> &AtomicU64 {
        // Written without a sum, which a position out of a damaged page could make overflow.
        assert!(at % 8 == 0 && at < self.length && self.length - at >= 8);
        // SAFETY: aligned and inside the mapping by the line above.
        unsafe { AtomicU64::from_ptr(self.start.add(at).cast()) }
    }

    #[inline]
    pub fn u32_at(&self, at: usize) -> &AtomicU32 {
        assert!(at % 4 == 0 && at < self.length && self.length - at >= 4);
        // SAFETY: aligned and inside the mapping by the line above.
        unsafe { AtomicU32::from_ptr(self.start.add(at).cast()) }
    }

    /// Asks memory for what will be read here soon; a wrong guess does no harm.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            // SAFETY: a hint never faults, wherever it points.
            unsafe { _mm_prefetch(self.start.wrapping_add(at).cast(), _MM_HINT_T0) };
        }
    }

    /// Makes the pages present and writable, so that no append waits for their first touch.
    pub fn populate(&self, from: usize, to: usize) {
        const MADV_POPULATE_WRITE: libc::c_int = 23;
        assert!(from % 4096 == 0 && from <= to && to <= self.length);
        // SAFETY: inside the mapping. Where the advice is unknown, or the file was cut meanwhile,
        // nothing happens, which is right too.
        unsafe { libc::madvise(self.start.add(from).cast(), to - from, MADV_POPULATE_WRITE) };
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and nobody holds a slice of it any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
