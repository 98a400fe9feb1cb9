//! A reader's place inside one segment: stepping to the next frame, and over damage.

use crate::control::Control;
use crate::frame::*;
use crate::layout::*;
use crate::region::Region;

#[derive(Clone)]
pub struct Cursor {
    pub position: usize,
    pub ordinal: u64,
    /// Up to here the segment may be read: every frame before it is published.
    limit: usize,
    /// The ordinal at the limit; None while the segment grows.
    limit_ordinal: Option<u64>,
    /// Where damage began whose length is not known yet: the ordinal is a lower bound until then.
    lost_at: Option<usize>,
}

pub enum Step<'a> {
    Frame(Frame<'a>),
    /// Nothing more to read up to the limit.
    End,
    Damage(&'static str),
    /// It is known now how many messages were lost to damage that had reached the end.
    Lost(u64),
    /// A whole message with a critical attribute that this version does not know.
    Unknown(usize),
}

impl Cursor {
    pub fn new(position: usize, ordinal: u64, limit: usize, limit_ordinal: Option<u64>) -> Cursor {
        Cursor { position, ordinal, limit, limit_ordinal, lost_at: None }
    }

    pub fn extend(&mut self, limit: usize, limit_ordinal: Option<u64>) {
        self.limit = limit.max(self.position);
        self.limit_ordinal = limit_ordinal;
    }

    pub fn is_final(&self) -> bool {
        self.limit_ordinal.is_some()
    }

    /// Looks how far the segment has grown; false when it has not.
    #[inline]
    fn refresh(&mut self, region: &Region, control: Option<&Control>) -> bool {
        if self.limit_ordinal.is_some() {
            return false;
        }
        match control.and_then(|control| control.published(region.number)) {
            Some(end) if end > self.limit && region.reaches(end) => {
                self.limit = end;
                true
            }
            _ => false,
        }
    }

    /// Moves to where the frame of this ordinal begins, if that is before the limit.
    pub fn seek(&mut self, region: &Region, control: Option<&Control>, ordinal: u64) -> bool {
        self.refresh(region, control);
        let bank = control.map(|control| control.active());
        let growing = bank.filter(|bank| bank.number() == region.number);
        let end = self.limit_ordinal.or_else(|| {
            growing.map(|bank| bank.get(BANK_NEXT_SEQUENCE).saturating_sub(region.base))
        });
        // To look for what another segment holds would mean to walk over all of this one.
        if end.is_some_and(|end| ordinal >= end) {
            return false;
        }
        let (position, found) = region.locate(ordinal, self.limit);
        let is_there = found == ordinal && position < self.limit;
        if is_there {
            (self.position, self.ordinal, self.lost_at) = (position, ordinal, None);
        }
        is_there
    }

    /// The frame in front, checked.
    #[inline]
    pub fn step<'a>(&mut self, region: &'a Region, control: Option<&Control>) -> Step<'a> {
        if self.position >= self.limit && !self.refresh(region, control) {
            return self.end();
        }
        if self.lost_at.is_some() {
            return self.find_again(region);
        }
        let bytes = region.map.bytes(self.position, self.limit);
        match decode(bytes, region.checksum, self.ordinal) {
            Ok(Some(frame)) if frame.head.kind as usize == KIND_MESSAGE => {
                match unknown_critical(frame.attributes()) {
                    None => Step::Frame(frame),
                    Some(tag) => Step::Unknown(tag),
                }
            }
            Ok(Some(_)) => Step::Damage("a seal stands where a message should"),
            Ok(None) => Step::Damage("there are zeros where a message should be"),
            Err(reason) => Step::Damage(reason),
        }
    }

    #[inline]
    pub fn pass(&mut self, frame: &Frame<'_>) {
        self.position += frame.bytes.len();
        self.ordinal = self.ordinal.wrapping_add(1);
    }

    /// Passes a frame that is whole but was not delivered.
    pub fn pass_unread(&mut self, region: &Region) {
        if let Ok(Some(frame)) = peek(region.map.bytes(self.position, self.limit)) {
            self.pass(&frame);
        }
    }

    /// Steps over damage to the next true frame, and tells the ordinal there if it can be known
    /// now.
    pub fn pass_damage(&mut self, region: &Region) -> Option<u64> {
        if let Some((position, ordinal)) = region.resync(self.position, self.ordinal, self.limit) {
            (self.position, self.ordinal) = (position, ordinal);
            return Some(ordinal);
        }
        if let Some(ordinal) = self.limit_ordinal {
            self.ordinal = ordinal.max(self.ordinal);
        } else {
            self.lost_at = Some(self.position);
        }
        self.position = self.limit;
        self.limit_ordinal
    }

    /// Nothing more to read; a segment that grows no more tells what was lost up to its end.
    #[cold]
    fn end(&mut self) -> Step<'static> {
        match (self.lost_at, self.limit_ordinal) {
            (Some(_), Some(ordinal)) => self.found(self.position, ordinal),
            _ => Step::End,
        }
    }

    /// Takes the ordinal from the first true frame behind damage that reached to what was the end.
    #[cold]
    fn find_again(&mut self, region: &Region) -> Step<'static> {
        let from = self.lost_at.unwrap_or(self.position);
        match region.resync(from, self.ordinal, self.limit) {
            Some((position, ordinal)) => self.found(position, ordinal),
            None => {
                self.position = self.limit;
                self.end()
            }
        }
    }

    fn found(&mut self, position: usize, ordinal: u64) -> Step<'static> {
        let lost = ordinal.saturating_sub(self.ordinal);
        (self.position, self.ordinal, self.lost_at) = (position, self.ordinal + lost, None);
        Step::Lost(lost)
    }
}
