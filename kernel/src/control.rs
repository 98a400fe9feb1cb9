//! class Control: the pages that processes share; lock words, banks, the durable mark, poison.

use crate::errors::*;
use crate::frame::read_u32;
use crate::layout::*;
use crate::lock::LockWord;
use crate::map::Map;
use crate::os;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{fence, AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::*};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// How many times this process was made by fork since the kernel was loaded: handles compare it to
/// notice that they belong to the parent.
pub static FORKS: AtomicU64 = AtomicU64::new(0);

/// Every lock word there is.
const LOCK_WORDS: [usize; 3] =
    [CONTROL_APPEND_LOCK_AT, CONTROL_FLUSH_LOCK_AT, CONTROL_MAINTENANCE_LOCK_AT];
/// How often a closing handle looks whether its other threads have let go of the lock words.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

#[pyclass(frozen, module = "penstock._kernel")]
pub struct Control {
    pub map: Map,
    pub lock_fd: AtomicI32,
    /// The slot of this handle plus one, 0 while it has none.
    pub owner: AtomicU32,
    /// One thread at a time proves that an owner is dead.
    pub proving: AtomicBool,
    attached: AtomicU64,
    pub stall_ns: u64,
}

impl Control {
    /// A handle that has no slot yet.
    pub fn over(map: Map, lock_fd: i32, stall_ns: u64) -> Control {
        Control {
            map,
            lock_fd: AtomicI32::new(lock_fd),
            owner: AtomicU32::new(0),
            proving: AtomicBool::new(false),
            attached: AtomicU64::new(FORKS.load(Relaxed)),
            stall_ns,
        }
    }

    #[inline]
    pub fn u32_at(&self, at: usize) -> &AtomicU32 {
        self.map.u32_at(at)
    }

    #[inline]
    pub fn u64_at(&self, at: usize) -> &AtomicU64 {
        self.map.u64_at(at)
    }

    /// A word to be changed: on a page that is mapped for reading the change would end the process.
    fn changed_at(&self, at: usize) -> &AtomicU64 {
        assert!(self.map.writable, "the control page is mapped for reading only");
        self.map.u64_at(at)
    }

    #[inline]
    pub fn is_attached(&self) -> bool {
        self.attached.load(Relaxed) == FORKS.load(Relaxed)
    }

    #[inline]
    pub fn lock_word(&self, at: usize) -> LockWord<'_> {
        LockWord { control: self, word: self.u32_at(at) }
    }

    #[inline]
    pub fn poison_errno(&self) -> u32 {
        self.u32_at(CONTROL_POISON_ERRNO_AT).load(Relaxed)
    }

    pub fn poison_error(&self) -> PyErr {
        LogPoisonedError::new_err((self.poison_errno(), self.poison_text()))
    }

    fn poison_text(&self) -> String {
        // The number was read first, and the text was written before it.
        fence(Acquire);
        let at = CONTROL_POISON_TEXT_AT;
        let bytes = self.map.bytes(at, at + CONTROL_POISON_TEXT_BYTES);
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Makes every later append of every process fail with this first cause.
    pub fn set_poison(&self, errno: i32, text: &str) {
        if self.poison_errno() == 0 {
            let length = text.len().min(CONTROL_POISON_TEXT_BYTES - 1);
            let at = CONTROL_POISON_TEXT_AT;
            self.map.bytes_mut(at, at + length).copy_from_slice(&text.as_bytes()[..length]);
            self.u32_at(CONTROL_POISON_ERRNO_AT).store(errno.max(1) as u32, Release);
        }
        self.wake_flush_waiters();
    }

    /// Takes a free slot for this handle and marks for mending what its last owner left locked;
    /// None when all of them are taken.
    pub fn take_slot(&self, lock_fd: i32, pid: u64) -> io::Result<Option<u32>> {
        for slot in 0..CONTROL_SLOTS as u32 {
            if os::try_lock_byte(lock_fd, LOCK_SLOTS_AT + slot as usize, libc::F_WRLCK)? {
                self.lock_fd.store(lock_fd, Relaxed);
                // In the child of a fork it may be a thread of the parent that was proving.
                self.proving.store(false, Relaxed);
                self.changed_at(slot_at(slot)).store(pid, Relaxed);
                for at in LOCK_WORDS {
                    self.lock_word(at).inherit(slot + 1);
                }
                self.owner.store(slot + 1, SeqCst);
                // Last of all: until then the locks of this handle are refused.
                self.attached.store(FORKS.load(Relaxed), Release);
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Gives the slot back once none of this handle's threads is inside a lock word any more.
    pub fn leave_slot(&self) {
        let owner = self.owner.swap(0, SeqCst);
        if owner != 0 && self.is_attached() {
            // The byte lock goes with the file, and who is still inside would count as dead then.
            let until = os::monotonic_ns().saturating_add(self.stall_ns);
            while LOCK_WORDS.iter().any(|at| self.lock_word(*at).owner() == owner)
                && os::monotonic_ns() < until
            {
                std::thread::sleep(LOOK_AGAIN);
            }
            self.u64_at(slot_at(owner - 1)).store(0, Relaxed);
        }
        self.lock_fd.store(-1, Relaxed);
    }

    fn call_locked<'py>(
        word: &LockWord<'_>,
        mend: bool,
        work: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let result = work.call1((mend,));
        if mend && result.is_err() {
            word.unlock_unmended();
        } else {
            word.unlock();
        }
        result
    }

    fn identity_check(&self) -> u64 {
        xxh3_64(self.map.bytes(0, CONTROL_CHECK_AT))
    }

    fn clean_check(&self) -> u64 {
        xxh3_64(self.map.bytes(CONTROL_CLEAN_AT, CONTROL_CLEAN_CHECK_AT))
    }

    fn slot_pid(&self, slot: u32) -> u64 {
        self.u64_at(slot_at(slot)).load(Relaxed)
    }

    pub fn pid_of_owner(&self, owner: u32) -> u64 {
        if owner == 0 || owner as usize > CONTROL_SLOTS {
            0
        } else {
            self.slot_pid(owner - 1)
        }
    }
}

#[pymethods]
impl Control {
    #[new]
    fn new(fd: i32, writable: bool, lock_fd: i32, stall_ns: u64) -> PyResult<Control> {
        // A mapping keeps the open file it was made from, and with it the locks of that open file.
        // This one is made from another, so that locks taken by `fd` end when `fd` is closed.
        let own = OpenOptions::new().read(true).write(writable).open(format!("/proc/self/fd/{fd}"));
        let fd = own.as_ref().map_or(fd, AsRawFd::as_raw_fd);
        Ok(Control::over(
            Map::new(fd, CONTROL_BYTES, writable).map_err(os_error)?,
            lock_fd,
            stall_ns,
        ))
    }

    /// Writes who this file belongs to; everything else is zero in a new file.
    fn initialise(&self, queue_id: &[u8], boot_id: &[u8], inode: u64, lock_inode: u64) {
        let bytes = self.map.bytes_mut(0, CONTROL_CHECK_AT + 8);
        bytes[..8].copy_from_slice(&CONTROL_MAGIC);
        bytes[CONTROL_VERSION_AT..CONTROL_VERSION_AT + 4]
            .copy_from_slice(&(FORMAT_VERSION as u32).to_le_bytes());
        bytes[CONTROL_QUEUE_ID_AT..CONTROL_QUEUE_ID_AT + 16].copy_from_slice(queue_id);
        bytes[CONTROL_BOOT_ID_AT..CONTROL_BOOT_ID_AT + 16].copy_from_slice(boot_id);
        bytes[CONTROL_INODE_AT..CONTROL_INODE_AT + 8].copy_from_slice(&inode.to_le_bytes());
        bytes[CONTROL_LOCK_INODE_AT..CONTROL_LOCK_INODE_AT + 8]
            .copy_from_slice(&lock_inode.to_le_bytes());
        self.u64_at(CONTROL_CHECK_AT).store(self.identity_check(), Release);
    }

    /// Queue id, boot id, own inode and the lock file's inode; None when the page is not ours to
    /// trust.
    fn identity<'py>(
        &self,
        py: Python<'py>,
    ) -> Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, u64, u64)> {
        let bytes = self.map.bytes(0, CONTROL_CHECK_AT);
        let version = read_u32(bytes, CONTROL_VERSION_AT);
        if bytes[..8] != CONTROL_MAGIC
            || version as usize != FORMAT_VERSION
            || self.u64_at(CONTROL_CHECK_AT).load(Acquire) != self.identity_check()
        {
            return None;
        }
        Some((
            PyBytes::new(py, &bytes[CONTROL_QUEUE_ID_AT..CONTROL_QUEUE_ID_AT + 16]),
            PyBytes::new(py, &bytes[CONTROL_BOOT_ID_AT..CONTROL_BOOT_ID_AT + 16]),
            self.u64_at(CONTROL_INODE_AT).load(Relaxed),
            self.u64_at(CONTROL_LOCK_INODE_AT).load(Relaxed),
        ))
    }

    /// Takes a free slot for this handle and marks for mending what its last owner left locked.
    fn claim_slot(&self, lock_fd: i32, pid: u64) -> PyResult<u32> {
        self.take_slot(lock_fd, pid).map_err(os_error)?.ok_or_else(|| {
            PyOSError::new_err(format!("all {CONTROL_SLOTS} writer slots of this queue are taken"))
        })
    }

    /// Gives the slot back, which waits for threads of this handle that hold a lock word; the byte
    /// lock goes with the file descriptor. Not to be called inside `locked`.
    fn leave(&self, py: Python<'_>) {
        py.detach(|| self.leave_slot());
    }

    /// The processes that hold a slot now.
    fn pids(&self) -> Vec<u64> {
        let fd = self.lock_fd.load(Relaxed);
        let own = self.owner.load(Relaxed);
        (0..CONTROL_SLOTS as u32)
            .filter(|slot| self.slot_pid(*slot) != 0)
            .filter(|slot| slot + 1 == own || os::byte_is_held(fd, LOCK_SLOTS_AT + *slot as usize))
            .map(|slot| self.slot_pid(slot))
            .collect()
    }

    fn load(&self, at: usize) -> u64 {
        self.u64_at(at).load(Acquire)
    }

    fn store(&self, at: usize, value: u64) {
        self.changed_at(at).store(value, Release);
    }

    /// Calls `work(mend)` holding one of the lock words, and lets go of it whatever comes of the
    /// call. `mend` is true when the last owner died holding it; it stays to be mended if the call
    /// fails.
    fn locked<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        work: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let word = self.lock_word(at);
        let mend = word.lock(py)?;
        Self::call_locked(&word, mend, work)
    }

    /// As `locked`, but returns False at once if an owner that lives has the word.
    fn try_locked<'py>(&self, at: usize, work: &Bound<'py, PyAny>) -> PyResult<bool> {
        let word = self.lock_word(at);
        match word.try_lock() {
            Some(mend) => Self::call_locked(&word, mend, work).map(|_| true),
            None => Ok(false),
        }
    }

    /// The active bank's words in the order of the layout, as one append left them.
    fn bank(&self) -> Vec<u64> {
        self.bank_words().to_vec()
    }

    /// Changes one word of the active bank, under the append lock.
    fn set_bank_word(&self, which: usize, value: u64) {
        assert!(which < CONTROL_BANK_BYTES);
        self.active().word(which).store(value, Release);
    }

    /// Fills the other bank and makes it the active one, under the append lock.
    fn begin_bank(&self, words: Vec<u64>) {
        self.turn_bank(&words);
    }

    fn wake(&self) {
        self.wake_readers();
    }

    fn poison(&self, errno: i32, text: &str) {
        self.set_poison(errno, text);
    }

    fn poisoned(&self) -> Option<(u32, String)> {
        (self.poison_errno() != 0).then(|| (self.poison_errno(), self.poison_text()))
    }

    /// Raises the durable mark; it never goes down.
    fn raise_durable(&self, sequence: u64, number: u64) {
        self.changed_at(CONTROL_DURABLE_NUMBER_AT).fetch_max(number, AcqRel);
        crate::flush::raise_mark(self, sequence);
        self.wake_flush_waiters();
    }

    /// Notes that everything up to here was flushed by the last handle that closed.
    fn set_clean(&self, number: u64, position: u64, sequence: u64, timestamp: i64) {
        self.store(CONTROL_CLEAN_NUMBER_AT, number);
        self.store(CONTROL_CLEAN_POSITION_AT, position);
        self.store(CONTROL_CLEAN_SEQUENCE_AT, sequence);
        self.store(CONTROL_CLEAN_TIMESTAMP_AT, timestamp as u64);
        self.store(CONTROL_CLEAN_CHECK_AT, self.clean_check());
    }

    fn clear_clean(&self) {
        self.store(CONTROL_CLEAN_CHECK_AT, 0);
    }

    /// Number, position and next sequence of a clean close, if the last close was one.
    fn clean(&self) -> Option<(u64, u64, u64)> {
        (self.load(CONTROL_CLEAN_CHECK_AT) == self.clean_check()).then(|| {
            (
                self.load(CONTROL_CLEAN_NUMBER_AT),
                self.load(CONTROL_CLEAN_POSITION_AT),
                self.load(CONTROL_CLEAN_SEQUENCE_AT),
            )
        })
    }
}

fn slot_at(slot: u32) -> usize {
    CONTROL_SLOTS_AT + slot as usize * CONTROL_SLOT_BYTES + SLOT_PID
}
