//! A bank: what is true of the active segment, a word per fact, in pages that processes share.

use crate::control::Control;
use crate::layout::*;
use crate::map::Map;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// The words of a bank that Python sees, in the order of the layout: all but the last one.
pub const BANK_WORDS: usize = BANK_FIRST_TIMESTAMP / 8 + 1;

/// The state of one segment; see `BANK_…` in the layout.
#[derive(Clone, Copy)]
pub struct Bank<'a> {
    map: &'a Map,
    at: usize,
}

impl<'a> Bank<'a> {
    #[inline]
    pub fn word(&self, which: usize) -> &'a AtomicU64 {
        self.map.u64_at(self.at + which)
    }

    #[inline]
    pub fn get(&self, which: usize) -> u64 {
        self.word(which).load(Relaxed)
    }

    #[inline]
    pub fn set(&self, which: usize, value: u64) {
        self.word(which).store(value, Relaxed);
    }

    #[inline]
    pub fn number(&self) -> u64 {
        self.word(BANK_NUMBER).load(Acquire)
    }
}

impl Control {
    #[inline]
    pub fn active(&self) -> Bank<'_> {
        self.bank_of(self.u32_at(CONTROL_BANK_AT).load(Acquire) & 1)
    }

    #[inline]
    fn bank_of(&self, index: u32) -> Bank<'_> {
        Bank { map: &self.map, at: CONTROL_BANKS_AT + index as usize * CONTROL_BANK_BYTES }
    }

    /// A word of the active bank, if this segment is the active one.
    #[inline]
    fn word_of(&self, number: u64, which: usize) -> Option<usize> {
        let bank = self.active();
        if bank.number() != number {
            return None;
        }
        let value = bank.word(which).load(Acquire);
        // A bank is used again two rolls later; its number is changed before anything else in it.
        (bank.number() == number).then_some(value as usize)
    }

    /// Where the published frames of this segment end, when it is the active one.
    #[inline]
    pub fn published(&self, number: u64) -> Option<usize> {
        self.word_of(number, BANK_POSITION)
    }

    /// How far this segment has blocks, when it is the active one.
    pub fn allocated(&self, number: u64) -> Option<usize> {
        self.word_of(number, BANK_ALLOCATED)
    }

    /// The active bank's words, all of one segment; position and next sequence are of one moment,
    /// even while an append is under way or its writer is stopped between the two.
    pub fn bank_words(&self) -> [u64; BANK_WORDS] {
        loop {
            let bank = self.active();
            let intent = bank.word(BANK_INTENT_END).load(Acquire);
            let from = bank.word(BANK_INTENT_SEQUENCE).load(Acquire);
            let mut words: [u64; BANK_WORDS] =
                std::array::from_fn(|index| bank.word(index * 8).load(Acquire));
            if intent > words[BANK_POSITION / 8] {
                // The next sequence may be moved already, but the position is not.
                words[BANK_NEXT_SEQUENCE / 8] = from;
            }
            // Had another append begun meanwhile, its words might be among these.
            let is_settled = bank.word(BANK_INTENT_END).load(Acquire) == intent;
            if is_settled && bank.number() == words[0] && self.active().at == bank.at {
                return words;
            }
            std::hint::spin_loop();
        }
    }

    /// Fills the other bank and makes it the active one, under the append lock.
    pub fn turn_bank(&self, words: &[u64]) {
        assert!(!words.is_empty() && words.len() <= BANK_WORDS);
        let next = (self.u32_at(CONTROL_BANK_AT).load(Relaxed) + 1) & 1;
        let bank = self.bank_of(next);
        bank.word(BANK_NUMBER).store(0, SeqCst);
        for index in 1..BANK_WORDS {
            let word = words.get(index).copied().unwrap_or(0);
            bank.word(index * 8).store(word, Release);
        }
        bank.word(BANK_NUMBER).store(words[0], SeqCst);
        self.u32_at(CONTROL_BANK_AT).store(next, SeqCst);
    }
}
