//! What is asked of Linux, each call in a safe coat: locks, futexes, blocks, flushes, clocks.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::AtomicU32;

/// Turns a call's -1 into the error it left behind.
fn checked(result: libc::c_int) -> io::Result<()> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Repeats a call that a signal interrupted.
fn retried(mut call: impl FnMut() -> libc::c_int) -> io::Result<()> {
    loop {
        match checked(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn byte_lock(kind: libc::c_int, at: usize) -> libc::flock {
    // SAFETY: a flock of zeros is a valid value; open-file locks want its pid to be zero.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = at as libc::off_t;
    lock.l_len = 1;
    lock
}

/// Tries to lock one byte of the file for this open file; false when another one has it.
pub fn try_lock_byte(fd: RawFd, at: usize, kind: libc::c_int) -> io::Result<bool> {
    let lock = byte_lock(kind, at);
    // SAFETY: the lock outlives the call.
    match retried(|| unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, &lock) }) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Whether another open file holds this byte; an unanswerable question counts as held.
pub fn byte_is_held(fd: RawFd, at: usize) -> bool {
    let mut lock = byte_lock(libc::F_WRLCK, at);
    // SAFETY: the kernel writes its answer into the lock, which outlives the call.
    match retried(|| unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &mut lock) }) {
        Ok(()) => lock.l_type != libc::F_UNLCK as libc::c_short,
        Err(_) => true,
    }
}

/// Sleeps until the word changes from `expected`, someone wakes it, a signal comes or the time is
/// over.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout_ns: u64) {
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the word is mapped for as long as the reference lives, and the call only reads it.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &timeout);
    }
}

/// Wakes up to `count` sleepers of the word, in any process.
pub fn futex_wake(word: &AtomicU32, count: i32) {
    // SAFETY: the word is mapped for as long as the reference lives.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count);
    }
}

/// Gives the file real blocks from `from` to `to` and makes it that long; zeros are written where
/// the file system cannot allocate.
pub fn allocate(fd: RawFd, from: usize, to: usize) -> io::Result<()> {
    let Some(length) = to.checked_sub(from).filter(|length| *length > 0) else {
        return Ok(());
    };
    let (from, length) = (from as libc::off_t, length as libc::off_t);
    // SAFETY: plain numbers.
    match retried(|| unsafe { libc::fallocate(fd, 0, from, length) }) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => {
            lengthen_with_zeros(fd, to)
        }
        result => result,
    }
}

/// Appends zeros until the file is this long. They go to wherever it ends at that very moment: of
/// two processes that lengthen a file at once, the slower one must not write zeros over messages
/// that were appended to what the faster one had made.
pub fn lengthen_with_zeros(fd: RawFd, to: usize) -> io::Result<()> {
    let mut zeros = vec![0_u8; 1 << 20];
    loop {
        let missing = to.saturating_sub(file_bytes(fd)?);
        if missing == 0 {
            return Ok(());
        }
        zeros.truncate(missing);
        let piece = libc::iovec { iov_base: zeros.as_mut_ptr().cast(), iov_len: zeros.len() };
        // SAFETY: the piece and the zeros it names outlive the call, which only reads them.
        retried(|| unsafe { libc::pwritev2(fd, &piece, 1, 0, libc::RWF_APPEND) as libc::c_int })?;
    }
}

/// The file's length now.
pub fn file_bytes(fd: RawFd) -> io::Result<usize> {
    // SAFETY: a stat of zeros is a valid value.
    let mut facts: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the value, which outlives the call.
    checked(unsafe { libc::fstat(fd, &mut facts) })?;
    Ok(facts.st_size as usize)
}

/// Writes some of the bytes at a position of the file and returns how many.
pub fn write_at(fd: RawFd, bytes: &[u8], at: usize) -> io::Result<usize> {
    // SAFETY: the slice is valid for reading for its whole length.
    let written =
        unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), bytes.len(), at as libc::off_t) };
    if written < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(written as usize)
    }
}

/// Reads bytes at a position of the file; false when the file ends before.
pub fn read_at(fd: RawFd, bytes: &mut [u8], at: usize) -> bool {
    // SAFETY: the slice is valid for writing for its whole length.
    let got = unsafe { libc::pread(fd, bytes.as_mut_ptr().cast(), bytes.len(), at as libc::off_t) };
    got == bytes.len() as isize
}

/// Makes the file several times longer than it has blocks. A file whose length grows with each step
/// gets small pages in memory, and appends then meet dozens of times as many page faults; a refusal
/// changes nothing but that.
pub fn stretch(fd: RawFd, allocated: usize, capacity: usize) {
    let wanted = allocated.saturating_mul(4).min(capacity);
    if file_bytes(fd).is_ok_and(|length| length < allocated.saturating_mul(2).min(capacity)) {
        // SAFETY: plain numbers.
        unsafe { libc::ftruncate(fd, wanted as libc::off_t) };
    }
}

/// The next position at which the file may hold anything but zeros; None when there is none.
pub fn next_data(fd: RawFd, position: usize) -> Option<usize> {
    // SAFETY: plain numbers; nothing here reads or writes at the file's own position.
    let found = unsafe { libc::lseek(fd, position as libc::off_t, libc::SEEK_DATA) };
    if found >= 0 {
        return Some(found as usize);
    }
    // A file system that does not know its holes is searched whole.
    let ended = io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO);
    (!ended).then_some(position)
}

/// Forces the file's bytes and its length to the disk. A failure is never retried: the kernel tells
/// of lost pages once and then reports success.
pub fn flush(fd: RawFd) -> io::Result<()> {
    // SAFETY: plain numbers.
    checked(unsafe { libc::fdatasync(fd) })
}

fn clock(kind: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the value, which outlives the call.
    unsafe { libc::clock_gettime(kind, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The wall clock in nanoseconds since 1970.
#[inline]
pub fn now_ns() -> i64 {
    clock(libc::CLOCK_REALTIME)
}

/// A clock that never goes back, for measuring how long a wait took.
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC) as u64
}
