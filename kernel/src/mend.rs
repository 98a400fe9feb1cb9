//! Mending the active segment after a writer that died in the middle of an append.

use crate::control::Control;
use crate::frame::*;
use crate::layout::*;
use crate::region::{Region, Walk};
use std::sync::atomic::Ordering::*;

/// Brings the bank and the segment to a state that an append could have left: what a dead writer
/// had published counts, what it had not is zeroed. The caller holds the append lock.
///
/// Who dies in here leaves it all to be done again.
pub fn mend(control: &Control, region: &Region) {
    let bank = control.active();
    let position = bank.get(BANK_POSITION) as usize;
    let limit = region.within(bank.get(BANK_ALLOCATED) as usize);
    if position > limit.saturating_sub(8) {
        return;
    }
    if region.map.u64_at(position).load(Acquire) == 0 {
        let intent = (bank.get(BANK_INTENT_END) as usize).min(limit);
        if intent > position {
            region.map.bytes_mut(position, intent).fill(0);
        }
    } else if let Some(end) = published(region, position, bank.get(BANK_NEXT_SEQUENCE), limit) {
        bank.set(BANK_LAST_CHECK, end.check);
        bank.set(BANK_LAST_TIMESTAMP, end.timestamp as u64);
        if bank.get(BANK_FIRST_TIMESTAMP) == 0 {
            bank.set(BANK_FIRST_TIMESTAMP, end.timestamp as u64);
        }
        bank.word(BANK_NEXT_SEQUENCE).store(region.sequence_of(end.ordinal), Release);
        bank.word(BANK_POSITION).store(end.position as u64, Release);
    }
}

/// The end of what a dead writer published here. None for a seal, and for damage: nothing is
/// appended behind it, for an append finds its place taken and the segment rolls.
fn published(region: &Region, position: usize, next: u64, limit: usize) -> Option<Walk> {
    // The dead writer may have moved the next sequence already or not, and the frame's check tells
    // which. But the check of a damaged frame tells any number, so only these two are believed.
    let counted = next.checked_sub(region.base)?;
    let frame = peek(region.rest(position, limit)).ok()??;
    let ordinal = frame.ordinal(region.checksum);
    if ordinal > counted {
        return None;
    }
    let end = region.walk(position, ordinal, limit);
    let is_next = ordinal == counted || end.ordinal == counted;
    (is_next && end.ordinal > ordinal).then_some(end)
}
