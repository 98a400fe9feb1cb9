"""Judges a damaged queue: what is read is what was written, and what is not read is told."""

import logging
import time
from pathlib import Path
from typing import NamedTuple

import penstock
from penstock.errors import (
    CorruptionError,
    FormatVersionError,
    MetadataError,
    PenstockError,
    QueueNotFoundError,
)
from penstock.kernel import LAYOUT, Message
from tests.crash.rot_corpus import SEGMENT_BYTES, Specimen, contents, options_of
from tests.crash.states import READS_MAX, opened

_TIDIED = LAYOUT["CONTROL_TIDIED_NUMBER_AT"]
# It takes a quarter of a second, so only one trial of so many waits for it.
TIDIED_EVERY = 25
TIDIES_WITHIN_SECONDS = 2


class Outcome(NamedTuple):
    """What came of one trial."""

    number: int
    told: str
    faults: list[str]
    """How it broke the promise."""
    lost: int
    refused: int


class Case(NamedTuple):
    """One damaged queue, and what is found wrong with it."""

    number: int
    told: str
    root: Path
    specimen: Specimen
    faults: list[str]


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
    case = Case(number, told, root, specimen, [])
    logger = logging.getLogger("penstock")
    logger.propagate = False
    losses = Losses()
    logger.addHandler(losses)
    refused = 0
    lost: set[int] = set()
    try:
        only_read(case)
        try:
            queue = opened(root, segment_bytes=SEGMENT_BYTES)
        except (FormatVersionError, MetadataError) as error:
            refused = 1
            check_refusal(error, case)
        else:
            with queue:
                lost = read_and_append(queue, losses, case)
            open_again(case, lost)
    except Exception as error:  # noqa: BLE001
        case.faults.append(f"{type(error).__name__} where none may come: {error}")
    finally:
        logger.removeHandler(losses)
    return Outcome(number, told, case.faults, len(lost), refused)


def check_refusal(error: PenstockError, case: Case) -> None:
    """Opening may be refused if a version is unknown, or nothing tells whose the files are."""
    if isinstance(error, MetadataError) and ".data:" not in case.told:
        case.faults.append(f"refused: {error}")


def only_read(case: Case) -> None:
    """Who only reads may be refused, and sees nothing wrong."""
    try:
        with penstock.open(case.root, read_only=True) as queue:
            check_messages(read_skipping(queue), case)
            queue.verify()
    except (FormatVersionError, MetadataError, CorruptionError, QueueNotFoundError):
        return


def read_and_append(queue: penstock.Queue, losses: Losses, case: Case) -> set[int]:
    """Look at a queue that was opened in spite of its damage; tell what is not there any more."""
    try:
        messages = read_skipping(queue)
    except FormatVersionError:
        # The version in a header was hit: an older Penstock cannot know better.
        return set()
    check_messages(messages, case)
    lost = set(case.specimen.sequences) - {message.sequence for message in messages}
    check_told(queue, lost, losses, case)
    check_appending(queue, case)
    check_seeking(queue, case)
    if case.number % TIDIED_EVERY == 0:
        wait_until_tidied(queue)
        check_messages(read_skipping(queue)[:-1], case)
    return lost


def check_told(queue: penstock.Queue, lost: set[int], losses: Losses, case: Case) -> None:
    """Each message that is gone lies in a range that reading tells of, or behind a lost end."""
    ranges = read_raising(queue, case)
    silent = {
        sequence
        for sequence in lost
        if not any(begin <= sequence < end for begin, end in ranges)
        and (losses.first_lost is None or sequence < losses.first_lost)
    }
    if silent and not may_be_silent(silent, case):
        case.faults.append(f"{sorted(silent)} are gone, and nothing told it")
    if ranges and queue.verify().ok:
        case.faults.append(f"reading told of {ranges}, and verifying did not")


def check_appending(queue: penstock.Queue, case: Case) -> None:
    """What is appended gets a sequence of its own, and can be made durable."""
    appended = queue.append(b"one more")
    highest = max(case.specimen.sequences, default=-1)
    if appended <= highest and not may_be_silent({highest}, case):
        case.faults.append(f"sequence {appended} was given out again, {highest} was the last")
    if queue.durable_sequence > queue.next_sequence:
        case.faults.append(f"durable up to {queue.durable_sequence} of {queue.next_sequence}")
    queue.flush()
    if queue.durable_sequence != queue.next_sequence:
        case.faults.append("flushing did not make everything durable")


def wait_until_tidied(queue: penstock.Queue) -> None:
    """Let the thread in the background cut and index what it will, damaged as it is."""
    log = queue._log
    until = time.monotonic() + TIDIES_WITHIN_SECONDS
    while log.control.load(_TIDIED) < log.host.bank().number - 1 and time.monotonic() < until:
        time.sleep(0.01)


def may_be_silent(silent: set[int], case: Case) -> bool:
    """Tell whether two accidents together took away all that could have told of a loss."""
    told, sequences = case.told, case.specimen.sequences
    newest = max(name for name in case.specimen.files if name.endswith(".data"))
    oldest = min(name for name in case.specimen.files if name.endswith(".data"))
    both_ends = f"{newest}:" in told and (".control:" in told or "metadata.json:" in told)
    both_begins = f"{oldest}:" in told and "metadata.json:" in told
    return both_ends or (both_begins and min(silent) == min(sequences))


def read_skipping(queue: penstock.Queue) -> list[Message]:
    """Read all there is."""
    tailer = queue.tailer(on_corrupt="skip")
    messages = [message for message, _ in zip(tailer, range(READS_MAX), strict=False)]
    if len(messages) == READS_MAX:
        raise AssertionError("reading does not come to an end")
    return messages


def read_raising(queue: penstock.Queue, case: Case) -> list[tuple[int, int]]:
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
            check_messages(messages, case)
            return ranges
        messages.append(message)
    raise AssertionError(f"reading does not come to an end: {ranges[:2]} … {ranges[-2:]}")


def check_messages(messages: list[Message], case: Case) -> None:
    """Each message is one that was written, and they are in order."""
    sequences = [message.sequence for message in messages]
    if sequences != sorted(set(sequences)):
        case.faults.append(f"{sequences} are not in order")
    if strange := sorted(set(sequences) - set(case.specimen.sequences)):
        case.faults.append(f"{strange} were never written")
    if wrong := [message.sequence for message in messages if not is_as_written(message)]:
        case.faults.append(f"{wrong} are not as they were written")


def is_as_written(message: Message) -> bool:
    """Compare all that was given."""
    options = options_of(message.sequence)
    return (
        message.payload == contents(message.sequence)
        and bytes(message.view) == message.payload
        and message.key == options.get("key")
        and message.headers == options.get("headers", {})
    )


def check_seeking(queue: penstock.Queue, case: Case) -> None:
    """From any place only what is there is read."""
    sequences = case.specimen.sequences
    for sequence in sequences[:: max(1, len(sequences) // 5)]:
        try:
            message = queue.tailer(sequence, on_corrupt="skip").read()
        except PenstockError:
            continue
        if message is None or message.payload == b"one more":
            continue
        if message.sequence < sequence or not is_as_written(message):
            case.faults.append(f"seeking {sequence} found {message!r}")


def open_again(case: Case, lost: set[int]) -> None:
    """What was there is there again, and so is what was appended."""
    with opened(case.root, segment_bytes=SEGMENT_BYTES) as queue:
        try:
            messages = read_skipping(queue)
        except FormatVersionError:
            return
        if [b"one more"] != [message.payload for message in messages[-1:]]:
            case.faults.append("what was appended is not there any more")
        check_messages(messages[:-1], case)
        again = {message.sequence for message in messages[:-1]}
        if changed := again ^ (set(case.specimen.sequences) - lost):
            case.faults.append(f"opening once more changed what is there by {sorted(changed)}")
