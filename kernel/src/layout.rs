//! Every byte constant of Penstock's files; `docs/format.md` is tested against `LAYOUT`.

/// Defines the constants and, from the same lines, the table that is compared with the document.
macro_rules! layout {
    ($($name:ident = $value:expr;)*) => {
        $(pub const $name: usize = $value;)*
        pub const LAYOUT: &[(&str, usize)] = &[$((stringify!($name), $name),)*];
    };
}

pub const SEGMENT_MAGIC: [u8; 8] = *b"PENSTOCK";
pub const INDEX_MAGIC: [u8; 8] = *b"PENSTIDX";
pub const CONTROL_MAGIC: [u8; 8] = *b"PENSTCTL";

layout! {
    // One version for all files of a queue: they are only ever read together.
    FORMAT_VERSION = 1;

    // The segment's header, first part: written and forced to the disk when the file is made.
    SEGMENT_HEADER_BYTES = 4096;
    SEGMENT_MAGIC_AT = 0;
    SEGMENT_VERSION_AT = 8;
    SEGMENT_CHECKSUM_AT = 12;
    SEGMENT_QUEUE_ID_AT = 16;
    SEGMENT_SALT_AT = 32;
    SEGMENT_CAPACITY_AT = 40;
    SEGMENT_INDEX_EVERY_AT = 48;
    SEGMENT_CREATED_AT = 56;
    SEGMENT_BOOT_ID_AT = 64;
    SEGMENT_PREPARED_CHECK_AT = 504;
    // Second part: stored when the segment becomes the active one.
    SEGMENT_NUMBER_AT = 512;
    SEGMENT_BASE_SEQUENCE_AT = 520;
    SEGMENT_BEGUN_AT = 528;
    SEGMENT_REASON_AT = 536;
    SEGMENT_PREVIOUS_NUMBER_AT = 544;
    SEGMENT_PREVIOUS_END_POSITION_AT = 552;
    SEGMENT_PREVIOUS_END_SEQUENCE_AT = 560;
    SEGMENT_PREVIOUS_CHECK_AT = 568;
    SEGMENT_DURABLE_SEQUENCE_AT = 576;
    SEGMENT_BEGUN_CHECK_AT = 1016;

    // Why a segment was begun.
    REASON_FIRST = 0;
    REASON_ROLL = 1;
    REASON_RECOVERY = 2;

    // The checksums a segment header may name.
    CHECKSUM_XXH3 = 1;
    CHECKSUM_CRC64_NVME = 2;

    // A frame: head, attributes, payload, padding to 8, check.
    FRAME_LENGTH_AT = 0;
    FRAME_KIND_AT = 4;
    FRAME_FLAGS_AT = 5;
    FRAME_ATTRIBUTES_AT = 6;
    FRAME_TIMESTAMP_AT = 8;
    FRAME_HEAD_BYTES = 16;
    FRAME_CHECK_BYTES = 8;
    FRAME_ALIGNMENT = 8;
    FRAME_BYTES_MIN = 24;

    KIND_MESSAGE = 1;
    KIND_SEAL = 2;

    // More frames of the same atomic append follow this one.
    FLAG_MORE = 1;

    // The seal frame's content.
    SEAL_COUNT_AT = 0;
    SEAL_LAST_SEQUENCE_AT = 8;
    SEAL_FIRST_TIMESTAMP_AT = 16;
    SEAL_LAST_TIMESTAMP_AT = 24;
    SEAL_CONTENT_BYTES = 32;
    SEAL_FRAME_BYTES = 56;

    // An attribute: tag u16, length u16, value. Who does not understand a tag with this bit must
    // not read the message.
    ATTRIBUTE_HEAD_BYTES = 4;
    ATTRIBUTE_CRITICAL = 0x8000;
    ATTRIBUTE_KEY = 1;
    ATTRIBUTE_HEADER = 2;
    ATTRIBUTE_EXPIRES_AT = 3;
    ATTRIBUTE_DELIVER_AT = 4;
    ATTRIBUTE_PRIORITY = 5;
    ATTRIBUTE_DEDUP_KEY = 6;
    ATTRIBUTE_COMPRESSION = 0x8007;
    ATTRIBUTE_PRODUCER = 8;
    ATTRIBUTE_DURABLE = 9;

    // A torn length must not allocate more than this; a frame's length is 32 bits wide.
    PAYLOAD_BYTES_MAX = 1 << 28;
    // The head counts the attributes in 16 bits, and 12 of them are kept for the durable mark.
    ATTRIBUTES_BYTES_MAX = 65520;
    // The header and room for a few frames; a smaller segment would be nothing but its header.
    SEGMENT_BYTES_MIN = 8192;
    SEGMENT_BYTES_MAX = 1 << 40;

    // The sparse index: entry k tells where the frame of ordinal k * index_every begins.
    INDEX_HEADER_BYTES = 256;
    INDEX_MAGIC_AT = 0;
    INDEX_VERSION_AT = 8;
    INDEX_QUEUE_ID_AT = 16;
    INDEX_NUMBER_AT = 32;
    INDEX_BASE_SEQUENCE_AT = 40;
    INDEX_SALT_AT = 48;
    INDEX_EVERY_AT = 56;
    INDEX_HEADER_CHECK_AT = 248;
    INDEX_ENTRY_BYTES = 16;

    // The control file: identity, then cache lines that are written together.
    CONTROL_BYTES = 36864;
    CONTROL_MAGIC_AT = 0;
    CONTROL_VERSION_AT = 8;
    CONTROL_QUEUE_ID_AT = 16;
    CONTROL_BOOT_ID_AT = 32;
    CONTROL_INODE_AT = 48;
    CONTROL_LOCK_INODE_AT = 56;
    CONTROL_CHECK_AT = 120;
    CONTROL_APPEND_LOCK_AT = 128;
    CONTROL_POISON_ERRNO_AT = 132;
    CONTROL_BANK_AT = 136;
    CONTROL_WAKE_AT = 192;
    CONTROL_DURABLE_SEQUENCE_AT = 256;
    CONTROL_DURABLE_NUMBER_AT = 264;
    CONTROL_DURABLE_WAKE_AT = 272;
    CONTROL_FLUSH_LOCK_AT = 276;
    CONTROL_NAMED_NUMBER_AT = 280;
    // The mark's complement: where the two agree, no bit of either has fallen since.
    CONTROL_DURABLE_COPY_AT = 288;
    CONTROL_MAINTENANCE_LOCK_AT = 320;
    CONTROL_TIDIED_NUMBER_AT = 328;
    CONTROL_TAKEOVERS_AT = 352;
    CONTROL_BANKS_AT = 384;
    CONTROL_BANK_BYTES = 128;
    CONTROL_CLEAN_AT = 640;
    CONTROL_CLEAN_NUMBER_AT = 640;
    CONTROL_CLEAN_POSITION_AT = 648;
    CONTROL_CLEAN_SEQUENCE_AT = 656;
    CONTROL_CLEAN_TIMESTAMP_AT = 664;
    CONTROL_CLEAN_CHECK_AT = 672;
    CONTROL_POISON_TEXT_AT = 1024;
    CONTROL_POISON_TEXT_BYTES = 512;
    CONTROL_SLOTS_AT = 4096;
    CONTROL_SLOT_BYTES = 32;
    CONTROL_SLOTS = 1024;

    // A bank: what is true of the active segment. Its first cache line is what an append writes.
    BANK_NUMBER = 0;
    BANK_BASE_SEQUENCE = 8;
    BANK_POSITION = 16;
    BANK_NEXT_SEQUENCE = 24;
    BANK_LAST_TIMESTAMP = 32;
    BANK_INTENT_END = 40;
    BANK_LAST_CHECK = 48;
    BANK_MARKED_SEQUENCE = 56;
    BANK_ALLOCATED = 64;
    BANK_CAPACITY = 72;
    BANK_ROLL_POSITION = 80;
    BANK_ROLL_SEQUENCE = 88;
    BANK_ROLL_TIME = 96;
    BANK_INDEX_EVERY = 104;
    BANK_FIRST_TIMESTAMP = 112;
    BANK_INTENT_SEQUENCE = 120;

    // A lock word: the owner's slot + 1, and two flags.
    LOCK_OWNER_MASK = 0xffff;
    LOCK_MEND = 1 << 30;
    LOCK_WAITERS = 1 << 31;

    // A slot: which process holds it.
    SLOT_PID = 0;

    // A byte of the control file that every writing handle holds a shared lock on while it lives.
    CONTROL_ALIVE_AT = 0;

    // Byte ranges of the lock file.
    LOCK_GATE_AT = 0;
    LOCK_COMPANY_AT = 1;
    LOCK_SLOTS_AT = 64;
}

// A frame begins with one 8-byte word that is published by a single store.
const _: () = assert!(FRAME_TIMESTAMP_AT == 8 && FRAME_ALIGNMENT == 8);
const _: () =
    assert!(SEAL_FRAME_BYTES == FRAME_HEAD_BYTES + SEAL_CONTENT_BYTES + FRAME_CHECK_BYTES);
const _: () = assert!(CONTROL_SLOTS_AT + CONTROL_SLOTS * CONTROL_SLOT_BYTES == CONTROL_BYTES);
const _: () = assert!(CONTROL_BANKS_AT % 64 == 0 && CONTROL_BANK_BYTES % 64 == 0);
const _: () = assert!(CONTROL_BANKS_AT + 2 * CONTROL_BANK_BYTES == CONTROL_CLEAN_AT);
const _: () = assert!(PAYLOAD_BYTES_MAX + ATTRIBUTES_BYTES_MAX < u32::MAX as usize / 2);
