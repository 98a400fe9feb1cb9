"""The faults that running rsketch's queue brought to light: none of them is ours.

One more, that a full disk kills the process, is held in `tests/crash`.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

import penstock
from penstock import RollStrategy
from penstock.errors import CorruptionError
from penstock.kernel import LAYOUT
from tests.conftest import SEGMENT_BYTES
from tests.unit.looking import HEADER_BYTES, data_files, flip, frame_bytes, payloads, sequences

THREADS = 8
LAST = b"that is all"


def contents_of(count):
    """Make payloads that differ."""
    return [b"%d" % number for number in range(count)]


def test_a_backlog_is_not_dropped_at_shutdown(open_queue):
    """Of 1000 messages that were appended 1 was left: here an append that returned is there."""
    contents = contents_of(1000)
    with open_queue() as queue:
        for content in contents:
            queue.append(content)

    assert contents == payloads(open_queue())


@pytest.mark.slow
def test_a_backlog_is_not_dropped_by_a_kill(queue_path, start_python, open_queue):
    """Of 13,795 messages 13,795 were lost: here each that was told is there."""
    script = """
        import os, signal, sys, penstock
        queue = penstock.open(sys.argv[1])
        for number in range(1000):
            print(queue.append(b"%d" % number))
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    told, _ = start_python(script, queue_path).communicate()

    assert ([str(number) for number in range(1000)], contents_of(1000)) == (
        told.split(),
        payloads(open_queue()),
    )


@pytest.mark.parametrize("reopenings", [1, 5])
def test_the_live_file_is_not_truncated_at_reopen(open_queue, reopenings):
    """What was appended since the last roll was cut away by the next open."""
    for number in range(reopenings):
        with open_queue() as queue:
            queue.append(b"%d" % number)

    assert contents_of(reopenings) == payloads(open_queue())


def test_a_moved_queue_is_not_truncated(open_queue, queue_path, tmp_path):
    """Its files name no absolute path, which another folder would make a lie."""
    with open_queue() as queue:
        queue.append_many(contents_of(10))
    queue_path.rename(tmp_path / "moved")
    with penstock.open(tmp_path / "moved") as moved:
        assert contents_of(10) == payloads(moved)


def test_a_second_opener_does_not_truncate(open_queue):
    """Of 600 messages of two writers 300 were left."""
    one, other = open_queue(), open_queue()
    for content in contents_of(300):
        one.append(content)
        other.append(content)

    assert [content for content in contents_of(300) for _ in range(2)] == payloads(one)


@pytest.mark.slow
@pytest.mark.parametrize("access", ["writer", "reader"])
def test_no_message_is_lost_while_tailing_over_a_roll(open_queue, access):
    """A reader that came between the making of a file and its first size skipped the file."""
    contents = contents_of(400)
    queue = open_queue(roll=RollStrategy.by_count(4))
    tailing = queue if access == "writer" else open_queue(read_only=True)

    def follow() -> list[bytes]:
        found = []
        for message in tailing.tailer().follow():
            if message.payload == LAST:
                break
            found.append(message.payload)
        return found

    with ThreadPoolExecutor(2) as pool:
        following = [pool.submit(follow) for _ in range(2)]
        for content in contents:
            queue.append(content)
        queue.append(LAST)

    assert [contents] * 2 == [each.result() for each in following]


@pytest.mark.slow
def test_a_sequence_names_the_message_it_was_returned_for(open_queue):
    """With eight threads nearly every sequence named another thread's message."""
    queue = open_queue(segment_bytes=1 << 20)

    def work(name: int) -> dict[int, bytes]:
        numbered = [b"%d/%d" % (name, number) for number in range(2000)]
        return {queue.append(content): content for content in numbered}

    with ThreadPoolExecutor(THREADS) as pool:
        told = {k: v for part in pool.map(work, range(THREADS)) for k, v in part.items()}

    assert told == {message.sequence: message.payload for message in queue.tailer()}


@pytest.mark.parametrize("count", [1, 3])
def test_an_empty_payload_is_not_taken_for_the_end(open_queue, count):
    """Its length was 0, which also meant that the file ends: what followed could not be reached."""
    with open_queue() as queue:
        queue.append_many([b""] * count)
        queue.append(b"behind")
    reopened = open_queue()
    reopened.append(b"last")

    assert ([b""] * count + [b"behind", b"last"], True) == (
        payloads(reopened),
        reopened.verify().ok,
    )


def test_the_index_of_later_files_is_not_empty(open_queue, queue_path):
    """Only a queue's first file ever got entries, so that seeking walked through all others."""
    queue = open_queue(roll=RollStrategy.by_count(10), index_every=3)
    for content in contents_of(35):
        queue.append(content)
    entry = LAYOUT["INDEX_ENTRY_BYTES"]
    found = []
    for file in sorted(queue_path.rglob("*.index")):
        entries = file.read_bytes()[LAYOUT["INDEX_HEADER_BYTES"] :]
        words = [entries[at : at + 8] for at in range(0, len(entries), entry)]
        found.append([int.from_bytes(word, "little") for word in words])

    assert [[0, 3, 6, 9], [10, 13, 16, 19], [20, 23, 26, 29], [30, 33]] == found


# Where a frame of 100 bytes of payload is damaged: in each of its parts.
PLACES = {"length": 0, "kind": 4, "flags": 5, "time": 8, "payload": 50, "check": 16 + 104}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bad", [0, 4, 9])
def test_a_bad_message_does_not_block_the_reader(open_queue, queue_path, place, bad):
    """The same error came for ever: here it comes once, and the neighbours stay readable."""
    with open_queue() as queue:
        queue.append_many([b"x" * 100] * 10)
    flip(data_files(queue_path)[0], HEADER_BYTES + bad * frame_bytes(b"x" * 100) + PLACES[place])
    tailer = open_queue(read_only=True).tailer()
    told = []
    with pytest.raises(CorruptionError) as error:
        told += sequences(iter(tailer.read, None))
    behind = sequences(iter(tailer.read, None))

    assert (bad, list(range(bad + 1, 10))) == (error.value.sequence, behind)


def test_a_bad_message_may_be_skipped(open_queue, queue_path):
    """It is counted, and everything else is read."""
    queue = open_queue()
    queue.append_many([b"x" * 100] * 10)
    for bad in (0, 3, 4, 9):
        place = HEADER_BYTES + bad * frame_bytes(b"x" * 100) + PLACES["payload"]
        flip(data_files(queue_path)[0], place)
    tailer = queue.tailer(on_corrupt="skip")
    found = sequences(tailer)
    queue.append(b"behind")
    found += sequences(tailer)

    assert ([1, 2, 5, 6, 7, 8, 10], 4) == (found, tailer.skipped)


def test_a_bad_message_does_not_move_the_others(open_queue, queue_path):
    """Each keeps its sequence, and is found by it."""
    with open_queue(roll=RollStrategy.by_count(10), index_every=2) as queue:
        for content in contents_of(30):
            queue.append(content)
    for file in data_files(queue_path):
        flip(file, HEADER_BYTES + 5 * frame_bytes(b"1"))
    queue = open_queue(read_only=True)
    good = [number for number in range(30) if number % 10 != 5]

    assert [b"%d" % number for number in good] == [
        queue.tailer(number).read().payload for number in good
    ]


INDEX_BYTES = LAYOUT["INDEX_HEADER_BYTES"] + 4 * LAYOUT["INDEX_ENTRY_BYTES"]


def test_counts_of_an_index_are_not_trusted(open_queue, queue_path):
    """One flipped bit in a count asked for 4 TB of memory, and ended the process."""
    with open_queue(roll=RollStrategy.by_count(10), index_every=3) as queue:
        for content in contents_of(25):
            queue.append(content)
    index = min(queue_path.rglob("*.index"))
    content = index.read_bytes()
    found = []
    for position in range(0, INDEX_BYTES, 5):
        damaged = bytearray(content)
        damaged[position] ^= 0x80
        index.write_bytes(damaged)
        with penstock.open(queue_path, read_only=True) as reader:
            found.append(tuple(payloads(reader.tailer(at).read_many(1)) for at in (0, 4, 9)))

    assert [([b"0"], [b"4"], [b"9"])] * len(found) == found


CONTROL = sorted(name for name in LAYOUT if name.startswith("CONTROL_") and name.endswith("_AT"))
BANK = sorted(name for name in LAYOUT if name.startswith("BANK_"))


@pytest.mark.parametrize("name", CONTROL + BANK)
@pytest.mark.parametrize("bits", [1, 0x80], ids=["low", "high"])
def test_counts_of_the_control_page_are_not_trusted(open_queue, queue_path, name, bits):
    """It is a cache: whatever it says after a fall of a bit, the messages are what they were."""
    with open_queue(roll=RollStrategy.by_count(10)) as queue:
        for content in contents_of(25):
            queue.append(content)
    places = [LAYOUT[name]]
    if name.startswith("BANK_"):
        bank = LAYOUT["CONTROL_BANKS_AT"]
        places = [bank + LAYOUT[name], bank + LAYOUT["CONTROL_BANK_BYTES"] + LAYOUT[name]]
    for place in places:
        flip(queue_path / ".control", place, bits)
    with open_queue() as reopened:
        before = payloads(reopened)
        reopened.append(b"new")
        after = payloads(reopened)

    assert (contents_of(25), [*contents_of(25), b"new"]) == (before, after)


def test_counts_of_a_seal_are_not_trusted(open_queue, queue_path):
    """How many messages a segment has is what the frames say."""
    with open_queue(roll=RollStrategy.by_count(10)) as queue:
        for content in contents_of(25):
            queue.append(content)
    seal = HEADER_BYTES + 10 * frame_bytes(b"1")
    flip(data_files(queue_path)[0], seal + LAYOUT["FRAME_HEAD_BYTES"], 0x80)

    assert contents_of(25) == payloads(open_queue())


def test_the_capacity_in_a_header_is_not_trusted(open_queue, queue_path):
    """The header has a check; without it a flipped bit would map a terabyte."""
    with open_queue(roll=RollStrategy.by_count(10)) as queue:
        for content in contents_of(25):
            queue.append(content)
    flip(data_files(queue_path)[1], LAYOUT["SEGMENT_CAPACITY_AT"] + 5, 0x80)
    tailer = open_queue(read_only=True).tailer(on_corrupt="skip")

    assert contents_of(10) + contents_of(25)[20:] == payloads(tailer)


def test_segments_stay_within_what_was_said(open_queue, queue_path):
    """A roll size above the file size lost 23 of 40 messages, with no error but a line in a log."""
    queue = open_queue(roll=RollStrategy.by_size(16 * SEGMENT_BYTES))
    contents = [b"x" * 10_000] * 40
    for content in contents:
        queue.append(content)

    assert (contents, True) == (
        payloads(queue),
        all(file.stat().st_size <= SEGMENT_BYTES for file in data_files(queue_path)),
    )
