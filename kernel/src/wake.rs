//! Sleeping until there is something to do, and waking who sleeps: readers, flush waiters, keepers.

use crate::control::Control;
use crate::layout::*;
use crate::os;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering::*};
use std::time::Duration;

/// A read-only mapping cannot say that it sleeps, so its reader looks again this often.
const LOOK_AGAIN_NS: u64 = 1_000_000;

impl Control {
    pub fn wake_flush_waiters(&self) {
        let word = self.u32_at(CONTROL_DURABLE_WAKE_AT);
        word.fetch_add(1, SeqCst);
        os::futex_wake(word, i32::MAX);
    }

    /// Wakes the readers that sleep; an odd word says that there are some. The caller has just left
    /// the append lock.
    #[inline]
    pub fn wake_readers(&self) {
        // The sleeper marks the word and then looks at the position; here it is the other way
        // round, so one of the two sees what the other did if both keep that order. On x86-64 the
        // swap that left the lock keeps it already, elsewhere a load may pass a store.
        #[cfg(not(target_arch = "x86_64"))]
        fence(SeqCst);
        let word = self.u32_at(CONTROL_WAKE_AT);
        let seen = word.load(SeqCst);
        if seen & 1 == 1
            && word.compare_exchange(seen, seen.wrapping_add(1), SeqCst, SeqCst).is_ok()
        {
            os::futex_wake(word, i32::MAX);
        }
    }

    /// Sleeps until an append or a roll happens, unless `ready` already; it may end before.
    pub fn sleep_for_append(&self, timeout_ns: u64, ready: impl Fn() -> bool) {
        if ready() {
            return;
        }
        if !self.map.writable {
            std::thread::sleep(Duration::from_nanos(timeout_ns.min(LOOK_AGAIN_NS)));
            return;
        }
        let word = self.u32_at(CONTROL_WAKE_AT);
        let mut seen = word.load(SeqCst);
        if seen & 1 == 0 {
            if word.compare_exchange(seen, seen.wrapping_add(1), SeqCst, SeqCst).is_err() {
                return;
            }
            seen = seen.wrapping_add(1);
        }
        fence(SeqCst);
        if !ready() {
            os::futex_wait(word, seen, timeout_ns);
        }
    }
}

/// How appenders wake the thread that works ahead of them: when an append ends behind `at`.
#[derive(Default)]
pub struct Bell {
    at: AtomicU64,
    word: AtomicU32,
}

impl Bell {
    /// Rings if an append that ends here is to be told. It comes after `wake_readers`, whose fence
    /// is needed here for the same reason.
    #[inline]
    pub fn appended(&self, end: usize) {
        if end as u64 >= self.at.load(Relaxed) {
            self.ring();
        }
    }

    #[cold]
    pub fn ring(&self) {
        self.at.store(u64::MAX, Relaxed);
        self.word.fetch_add(1, Release);
        os::futex_wake(&self.word, 1);
    }

    /// The next append rings, wherever it ends.
    pub fn ring_at_once(&self) {
        self.at.store(0, Relaxed);
    }

    /// What `sleep` wants to know: read before anything else is looked at.
    pub fn seen(&self) -> u32 {
        self.word.load(Acquire)
    }

    /// Sleeps until an append ends behind `at`, unless `ready` already, someone rang since `seen`,
    /// or the time is over.
    pub fn sleep(&self, seen: u32, at: usize, timeout_ns: u64, ready: impl Fn() -> bool) {
        self.at.store(at as u64, SeqCst);
        fence(SeqCst);
        if !ready() {
            os::futex_wait(&self.word, seen, timeout_ns);
        }
    }
}
