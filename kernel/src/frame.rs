//! One frame: its checksum, writing it, and reading it as whole, absent or broken.

use crate::layout::*;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The checksum of one segment: its kind, and the salt that keeps frames of another segment from
/// passing.
#[derive(Clone, Copy, Debug)]
pub struct Checksum {
    pub kind: u32,
    pub salt: u64,
}

impl Checksum {
    /// The checksum of a frame whose first word is `word` and whose other bytes are `rest`: the
    /// word is apart because it is stored in the file last of all.
    #[inline]
    pub fn of(&self, word: u64, rest: &[u8]) -> u64 {
        if self.kind == CHECKSUM_XXH3 as u32 {
            xxh3_64_with_seed(rest, word)
        } else {
            let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
            digest.update(&word.to_le_bytes());
            digest.update(rest);
            digest.finalize()
        }
    }

    /// What the frame of this ordinal stores as its check.
    #[inline]
    pub fn check(&self, word: u64, rest: &[u8], ordinal: u64) -> u64 {
        self.of(word, rest) ^ self.salt.wrapping_add(ordinal)
    }
}

/// The first 16 bytes of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub length: u32,
    pub kind: u8,
    pub flags: u8,
    pub attributes: u16,
    pub timestamp: i64,
}

impl Head {
    #[inline]
    pub fn new(kind: usize, attributes: usize, payload: usize, timestamp: i64) -> Head {
        Head {
            length: (FRAME_HEAD_BYTES + attributes + payload) as u32,
            kind: kind as u8,
            flags: 0,
            attributes: attributes as u16,
            timestamp,
        }
    }

    /// The word that makes the frame visible when it is stored.
    #[inline]
    pub fn word(&self) -> u64 {
        u64::from(self.length)
            | u64::from(self.kind) << 32
            | u64::from(self.flags) << 40
            | u64::from(self.attributes) << 48
    }

    #[inline]
    pub fn from_words(word: u64, timestamp: u64) -> Head {
        Head {
            length: word as u32,
            kind: (word >> 32) as u8,
            flags: (word >> 40) as u8,
            attributes: (word >> 48) as u16,
            timestamp: timestamp as i64,
        }
    }

    #[inline]
    pub fn frame_bytes(&self) -> usize {
        frame_bytes(self.length as usize)
    }

    #[inline]
    pub fn more_follows(&self) -> bool {
        self.flags & FLAG_MORE as u8 != 0
    }

    /// What is wrong with this head, before any byte behind it is touched.
    #[inline]
    fn fault(&self) -> Option<&'static str> {
        let length = self.length as usize;
        if length < FRAME_HEAD_BYTES + self.attributes as usize {
            Some("its length is shorter than its own head and attributes")
        } else if length > FRAME_HEAD_BYTES + u16::MAX as usize + PAYLOAD_BYTES_MAX {
            Some("its length is larger than any frame may be")
        } else if self.kind as usize != KIND_MESSAGE && self.kind as usize != KIND_SEAL {
            Some("its kind is unknown")
        } else {
            None
        }
    }
}

/// The bytes on disk of a frame of this length.
#[inline]
pub fn frame_bytes(length: usize) -> usize {
    length.next_multiple_of(FRAME_ALIGNMENT) + FRAME_CHECK_BYTES
}

#[inline]
pub fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline]
pub fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub fn write_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// A frame inside a segment's bytes.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    pub head: Head,
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    #[inline]
    pub fn attributes(&self) -> &'a [u8] {
        &self.bytes[FRAME_HEAD_BYTES..FRAME_HEAD_BYTES + self.head.attributes as usize]
    }

    #[inline]
    pub fn payload_at(&self) -> usize {
        FRAME_HEAD_BYTES + self.head.attributes as usize
    }

    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.payload_at()..self.head.length as usize]
    }

    #[inline]
    pub fn check(&self) -> u64 {
        read_u64(self.bytes, self.bytes.len() - FRAME_CHECK_BYTES)
    }

    /// The ordinal that makes this a true frame; of a damaged frame it is any number.
    #[inline]
    pub fn ordinal(&self, checksum: Checksum) -> u64 {
        let covered = &self.bytes[8..self.bytes.len() - FRAME_CHECK_BYTES];
        (checksum.of(self.head.word(), covered) ^ self.check()).wrapping_sub(checksum.salt)
    }
}

/// Reads the frame that begins `bytes`, believing its checksum: nothing there, or what is wrong
/// with it.
#[inline]
pub fn peek(bytes: &[u8]) -> Result<Option<Frame<'_>>, &'static str> {
    if bytes.len() < 8 {
        return Ok(None);
    }
    let word = read_u64(bytes, 0);
    if word as u32 == 0 {
        return if word == 0 { Ok(None) } else { Err("its length is zero but its head is not") };
    }
    if bytes.len() < FRAME_BYTES_MIN {
        return Err("it reaches beyond the end");
    }
    let head = Head::from_words(word, read_u64(bytes, FRAME_TIMESTAMP_AT));
    if let Some(reason) = head.fault() {
        return Err(reason);
    }
    match bytes.get(..head.frame_bytes()) {
        Some(bytes) => Ok(Some(Frame { head, bytes })),
        None => Err("it reaches beyond the end"),
    }
}

/// Reads and checks the frame that begins `bytes`.
#[inline]
pub fn decode(
    bytes: &[u8],
    checksum: Checksum,
    ordinal: u64,
) -> Result<Option<Frame<'_>>, &'static str> {
    match peek(bytes)? {
        Some(frame) if frame.ordinal(checksum) != ordinal => Err("its checksum does not match"),
        found => Ok(found),
    }
}

/// The attributes of a frame, one by one; ends at the first that does not fit.
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.0.get(..ATTRIBUTE_HEAD_BYTES)?;
        let tag = u16::from_le_bytes([head[0], head[1]]) as usize;
        let length = u16::from_le_bytes([head[2], head[3]]) as usize;
        let value = self.0.get(ATTRIBUTE_HEAD_BYTES..ATTRIBUTE_HEAD_BYTES + length)?;
        self.0 = &self.0[ATTRIBUTE_HEAD_BYTES + length..];
        Some((tag, value))
    }
}

/// The value of the first attribute with this tag.
pub fn attribute(attributes: &[u8], wanted: usize) -> Option<&[u8]> {
    Attributes(attributes).find(|(tag, _)| *tag == wanted).map(|(_, value)| value)
}

/// The value of an attribute that holds one 64-bit number.
pub fn attribute_u64(attributes: &[u8], wanted: usize) -> Option<u64> {
    attribute(attributes, wanted).filter(|value| value.len() == 8).map(|value| read_u64(value, 0))
}

/// A tag that must be understood and is not known to this version.
pub fn unknown_critical(attributes: &[u8]) -> Option<usize> {
    Attributes(attributes).map(|(tag, _)| tag).find(|tag| tag & ATTRIBUTE_CRITICAL != 0)
}

/// Adds one attribute; the caller has checked that the value fits 16 bits.
pub fn push_attribute(attributes: &mut Vec<u8>, tag: usize, value: &[u8]) {
    attributes.extend_from_slice(&(tag as u16).to_le_bytes());
    attributes.extend_from_slice(&(value.len() as u16).to_le_bytes());
    attributes.extend_from_slice(value);
}

/// Writes a whole frame but its first word into `target`, which is exactly `head.frame_bytes()`
/// long, and returns its check. The attributes come in two pieces: the caller's and the log's own.
#[inline]
pub fn encode(
    target: &mut [u8],
    head: &Head,
    attributes: [&[u8]; 2],
    payload: &[u8],
    checksum: Checksum,
    ordinal: u64,
) -> u64 {
    target[FRAME_TIMESTAMP_AT..FRAME_HEAD_BYTES].copy_from_slice(&head.timestamp.to_le_bytes());
    let mut at = FRAME_HEAD_BYTES;
    for piece in attributes {
        target[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
    let length = head.length as usize;
    target[at..length].copy_from_slice(payload);
    let check_at = target.len() - FRAME_CHECK_BYTES;
    target[length..check_at].fill(0);
    let check = checksum.check(head.word(), &target[8..check_at], ordinal);
    write_u64(target, check_at, check);
    check
}
