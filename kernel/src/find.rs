//! Finding a sequence or a time in one segment: by its sparse index first, then in steps.

use crate::frame::*;
use crate::layout::*;
use crate::os;
use crate::region::Region;

/// How many index entries are tried before the segment is gone through from its start. Entries that
/// a killed writer did not come to write are missing singly.
const ENTRIES_TRIED_MAX: u64 = 64;

/// So many frames ahead, if they are as long as this one, memory is asked for the head of the next:
/// stepping over frames is all waiting for memory.
const PREFETCHED_AHEAD: usize = 32;

impl Region {
    /// Entry k of the index, if it is true: the frame it names is there and has that ordinal.
    pub fn index_entry(&self, k: u64, limit: usize) -> Option<usize> {
        let mut entry = [0; INDEX_ENTRY_BYTES];
        let at = usize::try_from(k).ok()?.checked_mul(INDEX_ENTRY_BYTES)?;
        if !os::read_at(self.index_fd()?, &mut entry, INDEX_HEADER_BYTES.checked_add(at)?) {
            return None;
        }
        let ordinal = k.checked_mul(self.index_every)?;
        let position = usize::try_from(read_u64(&entry, 8)).ok()?;
        let is_true = read_u64(&entry, 0) == self.sequence_of(ordinal)
            && position >= SEGMENT_HEADER_BYTES
            && position % FRAME_ALIGNMENT == 0
            && matches!(decode(self.rest(position, limit), self.checksum, ordinal), Ok(Some(_)));
        is_true.then_some(position)
    }

    /// The last true index entry at or below an ordinal; the segment's first frame if there is
    /// none.
    pub fn indexed_before(&self, ordinal: u64, limit: usize) -> (usize, u64) {
        // No segment holds more frames than this, whatever it is asked for.
        let ordinal = ordinal.min((limit.min(self.capacity) / FRAME_BYTES_MIN) as u64);
        let last = ordinal / self.index_every;
        for k in (last.saturating_sub(ENTRIES_TRIED_MAX) + 1..=last).rev() {
            if let Some(position) = self.index_entry(k, limit) {
                return (position, k * self.index_every);
            }
        }
        (SEGMENT_HEADER_BYTES, 0)
    }

    /// Steps from a known frame towards `stop`, over damage too; ends at the first frame for which
    /// `stop` says true, at the start of damage that swallowed it, or at the limit.
    pub fn step_until(
        &self,
        mut position: usize,
        mut ordinal: u64,
        limit: usize,
        stop: impl Fn(u64, &Head) -> bool,
    ) -> (usize, u64) {
        if let Ok(Some(frame)) = peek(self.rest(position, limit)) {
            (1..PREFETCHED_AHEAD).for_each(|n| self.map.prefetch(position + n * frame.bytes.len()));
        }
        while position < limit {
            match peek(self.rest(position, limit)) {
                Ok(Some(frame)) if stop(ordinal, &frame.head) => break,
                Ok(Some(frame)) => {
                    let bytes = frame.bytes.len();
                    self.map.prefetch(position + PREFETCHED_AHEAD * bytes);
                    position += bytes;
                    ordinal += 1;
                }
                _ => {
                    let Some((behind, next)) = self.resync(position, ordinal, limit) else {
                        break;
                    };
                    let swallowed = match peek(self.rest(behind, limit)) {
                        Ok(Some(frame)) => next > ordinal && stop(next - 1, &frame.head),
                        _ => true,
                    };
                    if swallowed {
                        break;
                    }
                    (position, ordinal) = (behind, next);
                }
            }
        }
        (position, ordinal)
    }

    /// Where the message of this ordinal begins. A head that lies is noticed when the frame is
    /// checked, and then the way is gone again with every frame checked.
    pub fn locate(&self, target: u64, limit: usize) -> (usize, u64) {
        let (position, ordinal) = self.indexed_before(target, limit);
        let found = self.step_until(position, ordinal, limit, |at, _| at >= target);
        let is_true = match decode(self.rest(found.0, limit), self.checksum, found.1) {
            Ok(Some(_)) => true,
            // At the end there is no frame that could tell, so only the count can be right or not.
            Ok(None) => found.1 == target,
            Err(_) => false,
        };
        if is_true {
            found
        } else {
            self.locate_checked(position, ordinal, target, limit)
        }
    }

    fn locate_checked(&self, from: usize, at: u64, target: u64, limit: usize) -> (usize, u64) {
        let (mut position, mut ordinal) = (from, at);
        while position < limit && ordinal < target {
            match decode(self.rest(position, limit), self.checksum, ordinal) {
                Ok(Some(frame)) => {
                    position += frame.bytes.len();
                    ordinal += 1;
                }
                _ => match self.resync(position, ordinal, limit) {
                    Some((behind, next)) if next <= target => (position, ordinal) = (behind, next),
                    _ => break,
                },
            }
        }
        (position, ordinal)
    }

    /// Where the first message at or after a time begins: a binary search over the index, then
    /// steps.
    pub fn locate_time(&self, time: i64, limit: usize, count: u64) -> (usize, u64) {
        let (mut low, mut high) = (0, count.div_ceil(self.index_every));
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            let wanted = middle.saturating_mul(self.index_every);
            let (position, ordinal) = self.indexed_before(wanted, limit);
            let before = match peek(self.rest(position, limit)) {
                Ok(Some(frame)) => frame.head.timestamp < time,
                _ => false,
            };
            if before {
                low = middle;
            } else {
                high = middle.min(ordinal.div_ceil(self.index_every)).max(low);
            }
        }
        let (position, ordinal) = self.indexed_before(low.saturating_mul(self.index_every), limit);
        self.step_until(position, ordinal, limit, |_, head| head.timestamp >= time)
    }

    /// Writes the index entry of a frame; the index is a cache, so a failure costs only speed, and
    /// one that names a frame which was never published is noticed when it is used.
    #[cold]
    pub fn write_index_entry(&self, ordinal: u64, position: usize) {
        if let Some(index) = self.index_fd() {
            let entry = self.entry_of(ordinal, position);
            let at = INDEX_HEADER_BYTES + (ordinal / self.index_every) as usize * INDEX_ENTRY_BYTES;
            // The index is a cache, so a failure costs only speed.
            let _ = os::write_at(index, &entry, at);
        }
    }

    fn entry_of(&self, ordinal: u64, position: usize) -> [u8; INDEX_ENTRY_BYTES] {
        let mut entry = [0; INDEX_ENTRY_BYTES];
        write_u64(&mut entry, 0, self.sequence_of(ordinal));
        write_u64(&mut entry, 8, position as u64);
        entry
    }

    /// The index entries of all frames up to the limit, made anew; zeros for those that damage
    /// swallowed, which no reader takes for true.
    pub fn index_entries(&self, limit: usize) -> Vec<u8> {
        let mut entries = Vec::new();
        let (mut at, mut ordinal) = (SEGMENT_HEADER_BYTES, 0);
        let mut due = 0_u64;
        loop {
            (at, ordinal) = self.step_until(at, ordinal, limit, |ordinal, _| ordinal >= due);
            if !matches!(decode(self.rest(at, limit), self.checksum, ordinal), Ok(Some(_))) {
                let Some(behind) = self.resync(at, ordinal, limit) else {
                    return entries;
                };
                (at, ordinal) = behind;
            }
            while due < ordinal {
                entries.extend_from_slice(&[0; INDEX_ENTRY_BYTES]);
                due = due.saturating_add(self.index_every);
            }
            if ordinal == due {
                entries.extend_from_slice(&self.entry_of(due, at));
                due = due.saturating_add(self.index_every);
            }
        }
    }
}
