//! Putting frames into the active segment, under the append lock: written whole, then published.

use crate::bank::Bank;
use crate::control::Control;
use crate::frame::*;
use crate::layout::*;
use crate::os;
use crate::region::Region;
use std::ops::Range;
use std::sync::atomic::{fence, Ordering::*};

/// Memory is asked so far ahead for the two lines that a short frame takes: whoever touched these
/// pages has left them in another processor's cache.
const PREFETCHED_AHEAD: usize = 4096;

/// One message to put: its payload and its attributes, both already checked for size.
pub struct Part<'a> {
    pub payload: &'a [u8],
    pub attributes: &'a [u8],
}

/// What came of trying to put messages.
#[derive(Debug, PartialEq)]
pub enum Put {
    /// They are published: the first sequence, and where the last frame ends.
    Done(u64, usize),
    /// The active segment is another one than this process has mapped.
    Elsewhere,
    /// The segment is full, due to roll or not yet allocated so far; the bytes that are needed.
    NoRoom(usize),
    Poisoned,
}

/// The attribute that carries the durable mark into the log, on the first frame after a flush:
/// proof for recovery, at no write of its own.
fn mark_attribute(durable: u64) -> [u8; 12] {
    let mut mark = [0; 12];
    mark[..2].copy_from_slice(&(ATTRIBUTE_DURABLE as u16).to_le_bytes());
    mark[2..4].copy_from_slice(&8u16.to_le_bytes());
    mark[4..].copy_from_slice(&durable.to_le_bytes());
    mark
}

/// Puts all the messages behind the last one as one atomic append. The caller holds the append
/// lock.
///
/// A writer may die at any store of this, so their order is a promise to `mend`.
#[inline]
pub fn put(control: &Control, region: Option<&Region>, parts: &[Part<'_>]) -> Put {
    if control.poison_errno() != 0 {
        return Put::Poisoned;
    }
    let bank = control.active();
    let region = match region {
        Some(region) if region.number == bank.get(BANK_NUMBER) => region,
        _ => return Put::Elsewhere,
    };
    let durable = control.u64_at(CONTROL_DURABLE_SEQUENCE_AT).load(Relaxed);
    let mark = mark_attribute(durable);
    let mark = if durable == bank.get(BANK_MARKED_SEQUENCE) { &mark[..0] } else { &mark[..] };

    let bytes = frames_bytes(parts, mark);
    let position = bank.get(BANK_POSITION) as usize;
    let next = bank.get(BANK_NEXT_SEQUENCE);
    let timestamp = os::now_ns().max(bank.get(BANK_LAST_TIMESTAMP) as i64);
    let end = position.saturating_add(bytes);
    // What stands behind the last message, be it a seal or bytes nobody can explain, is never
    // written over.
    if !has_room(&bank, end, next, parts.len() as u64, timestamp)
        || region.map.u64_at(position).load(Relaxed) != 0
    {
        return Put::NoRoom(bytes);
    }

    if next == region.base {
        bank.set(BANK_FIRST_TIMESTAMP, timestamp as u64);
    }
    bank.set(BANK_INTENT_SEQUENCE, next);
    bank.word(BANK_INTENT_END).store(end as u64, Release);
    // From here on a mender must know how far the bytes may be dirty.
    fence(Release);
    let check = write_frames(region, next - region.base, parts, mark, position..end, timestamp);
    // They are published now. What the bank says of the last message follows, so that a writer that
    // dies before leaves it saying what is true of the message before.
    bank.word(BANK_LAST_CHECK).store(check, Release);
    bank.word(BANK_LAST_TIMESTAMP).store(timestamp as u64, Release);
    if !mark.is_empty() {
        bank.word(BANK_MARKED_SEQUENCE).store(durable, Release);
    }
    bank.word(BANK_NEXT_SEQUENCE).store(next + parts.len() as u64, Release);
    // The position goes last: a mender that finds no frame there knows that all else is up to date.
    bank.word(BANK_POSITION).store(end as u64, Release);
    Put::Done(next, end)
}

/// The bytes these messages take as frames; the first one carries the mark.
#[inline]
fn frames_bytes(parts: &[Part<'_>], mark: &[u8]) -> usize {
    let mut bytes = 0;
    let mut extra = mark.len();
    for part in parts {
        let length = FRAME_HEAD_BYTES + part.attributes.len() + extra + part.payload.len();
        bytes += frame_bytes(length);
        extra = 0;
    }
    bytes
}

#[inline]
fn has_room(bank: &Bank<'_>, end: usize, next: u64, count: u64, timestamp: i64) -> bool {
    let sealed_end = end.saturating_add(SEAL_FRAME_BYTES) as u64;
    if sealed_end > bank.get(BANK_ALLOCATED) {
        return false;
    }
    // The first append of a segment always finds its place: a segment is never empty when it rolls.
    next == bank.get(BANK_BASE_SEQUENCE)
        || (sealed_end <= bank.get(BANK_ROLL_POSITION)
            && next + count <= bank.get(BANK_ROLL_SEQUENCE)
            && timestamp < bank.get(BANK_ROLL_TIME) as i64)
}

/// Writes the frames and publishes them all by storing the first one's first word last; returns the
/// check of the last one.
#[inline]
fn write_frames(
    region: &Region,
    first_ordinal: u64,
    parts: &[Part<'_>],
    mark: &[u8],
    place: Range<usize>,
    timestamp: i64,
) -> u64 {
    let mut position = place.start;
    let mut rest = region.map.bytes_mut(place.start, place.end);
    let mut first_word = 0;
    let mut check = 0;
    // One division for all of them: it costs as much as the checksum of a short message.
    let mut index_due = first_ordinal.next_multiple_of(region.index_every);
    for (index, part) in parts.iter().enumerate() {
        let own = if index == 0 { mark } else { &[] };
        let attributes = part.attributes.len() + own.len();
        let mut head = Head::new(KIND_MESSAGE, attributes, part.payload.len(), timestamp);
        if index + 1 < parts.len() {
            head.flags = FLAG_MORE as u8;
        }
        let (target, behind) = rest.split_at_mut(head.frame_bytes());
        let ordinal = first_ordinal + index as u64;
        let pieces = [part.attributes, own];
        check = encode(target, &head, pieces, part.payload, region.checksum, ordinal);
        if index == 0 {
            first_word = head.word();
        } else {
            write_u64(target, 0, head.word());
        }
        if ordinal == index_due {
            region.write_index_entry(ordinal, position);
            index_due += region.index_every;
        }
        region.map.prefetch(position + PREFETCHED_AHEAD);
        region.map.prefetch(position + PREFETCHED_AHEAD + 64);
        position += head.frame_bytes();
        rest = behind;
    }
    region.map.u64_at(place.start).store(first_word, Release);
    check
}
