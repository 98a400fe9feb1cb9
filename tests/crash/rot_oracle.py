"""Judges a damaged queue: what is read is what was written, and what is not read is told."""

import logging
from pathlib import Path
from typing import NamedTuple

import penstock
from penstock.errors import CorruptionError, FormatVersionError, MetadataError, PenstockError
from penstock.kernel import Message
from tests.crash.rot_corpus import SEGMENT_BYTES, Specimen, contents, options_of
from tests.crash.states import READS_MAX, opened


class Outcome(NamedTuple):
    """What came of one trial."""

    number: int
    told: str
    faults: list[str]
    """How it broke the promise."""
    lost: int
    refused: int


class Losses(logging.Handler):
    """Listens to what opening says about a lost end."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first_lost: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep from which sequence on messages are lost."""
        first = getattr(record, "first_lost", None)
        if first is not None:
            self.first_lost = min(first, first if self.first_lost is None else self.first_lost)


def judge(number: int, told: str, root: Path, specimen: Specimen) -> Outcome:
    """Read the queue in every way, append to it, and open it once more."""
    faults: list[str] = []
    logger = logging.getLogger("penstock")
    logger.propagate = False
    losses = Losses()
    logger.addHandler(losses)
    refused = 0
    lost: set[int] = set()
    try:
        only_read(root, specimen, faults)
        try:
            queue = opened(root, segment_bytes=SEGMENT_BYTES)
        except (FormatVersionError, MetadataError) as error:
            refused = 1
            check_refusal(error, told, faults)
        else:
            with queue:
                lost = read_and_append(queue, specimen, losses, told, faults)
            open_again(root, specimen, lost, faults)
    except Exception as error:  # noqa: BLE001
        faults.append(f"{type(error).__name__} where none may come: {error}")
    finally:
        logger.removeHandler(losses)
    return Outcome(number, told, faults, len(lost), refused)


def check_refusal(error: PenstockError, told: str, faults: list[str]) -> None:
    """Opening may be refused if a version is unknown, or nothing tells whose the files are."""
    if isinstance(error, MetadataError) and told.count(".data:") == 0:
        faults.append(f"refused: {error}")


def only_read(root: Path, specimen: Specimen, faults: list[str]) -> None:
    """Who only reads may be refused, and sees nothing wrong."""
    try:
        with penstock.open(root, read_only=True) as queue:
            check_messages(read_skipping(queue), specimen, faults)
            queue.verify()
    except (FormatVersionError, MetadataError, CorruptionError, penstock.errors.QueueNotFoundError):
        return


def read_and_append(
    queue: penstock.Queue, specimen: Specimen, losses: Losses, told: str, faults: list[str]
) -> set[int]:
    """Look at a queue that was opened in spite of its damage; tell what is not there any more."""
    try:
        messages = read_skipping(queue)
    except FormatVersionError:
        # The version in a header was hit: an older Penstock cannot know better.
        return set()
    check_messages(messages, specimen, faults)
    lost = set(specimen.sequences) - {message.sequence for message in messages}
    ranges = read_raising(queue, specimen, faults)
    silent = {
        sequence
        for sequence in lost
        if not any(begin <= sequence < end for begin, end in ranges)
        and (losses.first_lost is None or sequence < losses.first_lost)
    }
    if silent and not may_be_silent(told, silent, specimen):
        faults.append(f"{sorted(silent)} are gone, and nothing told it")
    if ranges and queue.verify().ok:
        faults.append(f"reading told of {ranges}, and verifying did not")
    appended = queue.append(b"one more")
    highest = max(specimen.sequences, default=-1)
    if appended <= highest and not may_be_silent(told, {highest}, specimen):
        faults.append(f"sequence {appended} was given out again, {highest} was the last")
    if queue.durable_sequence > queue.next_sequence:
        faults.append(f"durable up to {queue.durable_sequence} of {queue.next_sequence}")
    queue.flush()
    if queue.durable_sequence != queue.next_sequence:
        faults.append("flushing did not make everything durable")
    check_seeking(queue, specimen, faults)
    return lost


def may_be_silent(told: str, silent: set[int], specimen: Specimen) -> bool:
    """Tell whether two accidents together took away all that could have told of a loss."""
    newest = max(name for name in specimen.files if name.endswith(".data"))
    oldest = min(name for name in specimen.files if name.endswith(".data"))
    both_ends = f"{newest}:" in told and ".control:" in told
    both_begins = f"{oldest}:" in told and "metadata.json:" in told
    return both_ends or (both_begins and min(silent) == min(specimen.sequences))


def read_skipping(queue: penstock.Queue) -> list[Message]:
    """Read all there is."""
    tailer = queue.tailer(on_corrupt="skip")
    messages = [message for message, _ in zip(tailer, range(READS_MAX), strict=False)]
    if len(messages) == READS_MAX:
        raise AssertionError("reading does not come to an end")
    return messages


def read_raising(
    queue: penstock.Queue, specimen: Specimen, faults: list[str]
) -> list[tuple[int, int]]:
    """Read on behind each error; tell the ranges that errors told of."""
    ranges: list[tuple[int, int]] = []
    messages: list[Message] = []
    tailer = None
    for _ in range(READS_MAX):
        try:
            tailer = tailer or queue.tailer()
            message = tailer.read()
        except CorruptionError as error:
            begin = 0 if error.sequence is None else error.sequence
            end = 1 << 62 if error.next_sequence is None else error.next_sequence
            ranges.append((begin, end))
            continue
        if message is None:
            check_messages(messages, specimen, faults)
            return ranges
        messages.append(message)
    raise AssertionError(f"reading does not come to an end: {ranges[:2]} … {ranges[-2:]}")


def check_messages(messages: list[Message], specimen: Specimen, faults: list[str]) -> None:
    """Each message is one that was written, and they are in order."""
    known = set(specimen.sequences)
    last = -1
    for message in messages:
        sequence = message.sequence
        if sequence <= last:
            faults.append(f"message {sequence} comes behind {last}")
        elif sequence not in known:
            faults.append(f"message {sequence} was never written")
        elif not is_as_written(message):
            faults.append(f"message {sequence} is not as it was written")
        last = sequence


def is_as_written(message: Message) -> bool:
    """Compare all that was given."""
    options = options_of(message.sequence)
    return (
        message.payload == contents(message.sequence)
        and bytes(message.view) == message.payload
        and message.key == options.get("key")
        and message.headers == options.get("headers", {})
    )


def check_seeking(queue: penstock.Queue, specimen: Specimen, faults: list[str]) -> None:
    """From any place only what is there is read."""
    for sequence in specimen.sequences[:: max(1, len(specimen.sequences) // 5)]:
        try:
            message = queue.tailer(sequence, on_corrupt="skip").read()
        except PenstockError:
            continue
        if message is None or message.payload == b"one more":
            continue
        if message.sequence < sequence or not is_as_written(message):
            faults.append(f"seeking {sequence} found {message!r}")


def open_again(root: Path, specimen: Specimen, lost: set[int], faults: list[str]) -> None:
    """What was there is there again, and so is what was appended."""
    with opened(root, segment_bytes=SEGMENT_BYTES) as queue:
        try:
            messages = read_skipping(queue)
        except FormatVersionError:
            return
        if [b"one more"] != [message.payload for message in messages[-1:]]:
            faults.append("what was appended is not there any more")
        check_messages(messages[:-1], specimen, faults)
        again = {message.sequence for message in messages[:-1]}
        if changed := again ^ (set(specimen.sequences) - lost):
            faults.append(f"opening once more changed what is there by {sorted(changed)}")
