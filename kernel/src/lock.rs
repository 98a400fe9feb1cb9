//! A lock word that processes share: taken by one swap, given up by death, never by a timer.

use crate::control::Control;
use crate::errors::{QueueClosedError, WriterStalledError};
use crate::layout::*;
use crate::os;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering::*};

const OWNER: u32 = LOCK_OWNER_MASK as u32;
const MEND: u32 = LOCK_MEND as u32;
const WAITERS: u32 = LOCK_WAITERS as u32;

/// How often a waiter looks before it sleeps: about two microseconds, a few appends of another
/// process.
const SPINS: u32 = 60;
/// How long it sleeps before it asks whether the owner still lives.
const SLEEP_NS: u64 = 2_000_000;

/// A wait that took longer counts as so long: it was the waiter itself that stood still.
const STEP_NS_MAX: u64 = 50_000_000;

/// How long one and the same owner has been waited for.
#[derive(Default)]
pub struct Stall {
    owner: u32,
    progress: u64,
    waited_ns: u64,
}

impl Stall {
    /// Notes who has the word after one more step of waiting, and tells how long that owner has
    /// stood still with it, as far as it was seen: 0 when it is another one than before, or nobody,
    /// or when the log went on.
    pub fn look(&mut self, owner: u32, progress: u64, step_ns: u64) -> u64 {
        if owner == 0 || owner != self.owner || progress != self.progress {
            *self = Stall { owner, progress, waited_ns: 0 };
        } else {
            self.waited_ns += step_ns.min(STEP_NS_MAX);
        }
        self.waited_ns
    }
}

pub struct LockWord<'a> {
    pub control: &'a Control,
    pub word: &'a AtomicU32,
}

impl LockWord<'_> {
    /// This handle's slot plus one; 0 when it was closed, or belongs to the parent of this process:
    /// then it may take no lock, for nobody could tell whether its owner lives.
    #[inline]
    fn me(&self) -> u32 {
        if self.control.is_attached() {
            self.control.owner.load(Relaxed)
        } else {
            0
        }
    }

    /// Swaps the word from what was seen to `mine`; `mend` says whether the last owner died.
    #[inline]
    fn take(&self, seen: u32, mine: u32, mend: bool) -> bool {
        if self.word.compare_exchange(seen, mine, SeqCst, Relaxed).is_err() {
            return false;
        }
        // Another thread may have closed the handle since `mine` was read. It gives up the slot
        // first and then looks at the word, so one of the two notices the other.
        if self.control.owner.load(SeqCst) == mine & OWNER {
            return true;
        }
        self.give_back(mend);
        false
    }

    #[cold]
    fn give_back(&self, mend: bool) {
        if mend {
            self.unlock_unmended();
        } else {
            self.unlock();
        }
    }

    /// Takes the word if it is free and nothing is to be mended: the way nearly every append goes.
    #[inline]
    pub fn try_fast(&self) -> bool {
        let me = self.me();
        me != 0 && self.take(0, me, false)
    }

    /// Waits for the word; true when its last owner died holding it and its work must be mended.
    pub fn lock(&self, py: Python<'_>) -> PyResult<bool> {
        if self.try_fast() {
            return Ok(false);
        }
        let mut stall = Stall::default();
        let mut slept = 0;
        loop {
            if self.me() == 0 {
                return Err(QueueClosedError::new_err(()));
            }
            if let Some(mend) = self.spin(slept) {
                return Ok(mend);
            }
            let begun = os::monotonic_ns();
            // The word is taken before Python's lock is asked for: a busy thread of this process
            // would else have taken it again each time.
            let taken = py.detach(|| {
                self.sleep();
                self.spin(WAITERS).or_else(|| self.take_from_dead())
            });
            if let Some(mend) = taken {
                return Ok(mend);
            }
            py.check_signals()?;
            slept = WAITERS;
            let went_on = self.control.active().get(BANK_POSITION);
            let waited = stall.look(self.owner(), went_on, os::monotonic_ns() - begun);
            let pid = self.control.pid_of_owner(stall.owner);
            // A slot without a process is about to be given up, and the word with it.
            if waited > self.control.stall_ns && pid != 0 {
                return match self.try_lock() {
                    Some(mend) => Ok(mend),
                    None => Err(WriterStalledError::new_err((pid, waited as f64 / 1e9))),
                };
            }
        }
    }

    /// Takes the word if it is free or its owner is dead, without waiting.
    pub fn try_lock(&self) -> Option<bool> {
        self.spin(0).or_else(|| self.take_from_dead())
    }

    fn spin(&self, waiters: u32) -> Option<bool> {
        let me = self.me();
        if me == 0 {
            return None;
        }
        for _ in 0..SPINS {
            let seen = self.word.load(Relaxed);
            let mend = seen & MEND != 0;
            if seen & OWNER == 0 && self.take(seen, me | (seen & WAITERS) | waiters, mend) {
                return Some(mend);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Sleeps until the owner lets go, or a while.
    pub fn sleep(&self) {
        let seen = self.word.load(Relaxed);
        if seen & OWNER == 0 {
            return;
        }
        let waited_for = seen | WAITERS;
        if seen == waited_for
            || self.word.compare_exchange(seen, waited_for, Relaxed, Relaxed).is_ok()
        {
            os::futex_wait(self.word, waited_for, SLEEP_NS);
        }
    }

    /// Takes the word from an owner whose byte in the lock file is free: the system frees it with
    /// the process, whatever ended it.
    fn take_from_dead(&self) -> Option<bool> {
        // The byte is locked for the open file, so for all threads of this handle at once: what one
        // of them frees would no longer prove anything to another.
        if self.control.proving.swap(true, Acquire) {
            return None;
        }
        let taken = self.take_proven();
        self.control.proving.store(false, Release);
        taken.then_some(true)
    }

    fn take_proven(&self) -> bool {
        let (seen, me) = (self.word.load(Relaxed), self.me());
        let owner = seen & OWNER;
        if owner == 0 || me == 0 || owner == me {
            return false;
        }
        let fd = self.control.lock_fd.load(Relaxed);
        let byte = LOCK_SLOTS_AT + owner as usize - 1;
        // Holding the byte keeps a new process from claiming the slot, and with it this very word,
        // between the proof of death and the swap.
        if !matches!(os::try_lock_byte(fd, byte, libc::F_WRLCK), Ok(true)) {
            return false;
        }
        let taken = self.take(seen, me | WAITERS, true);
        let _ = os::try_lock_byte(fd, byte, libc::F_UNLCK);
        if taken {
            self.control.u64_at(CONTROL_TAKEOVERS_AT).fetch_add(1, Relaxed);
        }
        taken
    }

    /// Marks the word for mending when its owner was the dead process whose slot we just claimed.
    pub fn inherit(&self, owner: u32) {
        let seen = self.word.load(Relaxed);
        if seen & OWNER != owner {
            return;
        }
        // A waiter may be adding its flag meanwhile; nobody else changes a dead owner's word, since
        // we hold the byte that would prove its death.
        self.word.swap(MEND, SeqCst);
        self.control.u64_at(CONTROL_TAKEOVERS_AT).fetch_add(1, Relaxed);
        os::futex_wake(self.word, i32::MAX);
    }

    /// The slot plus one of the handle that has the word; 0 while it is free.
    pub fn owner(&self) -> u32 {
        self.word.load(SeqCst) & OWNER
    }

    #[inline]
    pub fn unlock(&self) {
        if self.word.swap(0, SeqCst) & WAITERS != 0 {
            os::futex_wake(self.word, 1);
        }
    }

    /// Frees the word but leaves the mending to whoever takes it next.
    pub fn unlock_unmended(&self) {
        self.word.swap(MEND, SeqCst);
        os::futex_wake(self.word, i32::MAX);
    }
}

/// The word while a panic may still come: dropped by one, it leaves the mending to whoever is next.
pub struct Held<'a>(pub LockWord<'a>);

impl Held<'_> {
    #[inline]
    pub fn unlock(self) {
        self.0.unlock();
        std::mem::forget(self);
    }

    pub fn unlock_unmended(self) {
        drop(self);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.unlock_unmended();
    }
}
