"""Queues to damage, kept as bytes: closed and killed ones, of one boot and of several."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import penstock
from penstock import RetentionPolicy, clock
from penstock.kernel import LAYOUT, Control
from tests.crash.processes import die, killed
from tests.crash.states import opened, payload, poison, roll

SEGMENT_BYTES = 16 << 10
OTHER_BOOT = b"some other boot."
Files = dict[str, bytes]


class Specimen(NamedTuple):
    """A queue as it was before anything happened to it."""

    name: str
    files: Files
    older: Files
    """The same files as they were some messages before."""
    sequences: list[int]
    is_closed: bool
    durable_sequence: int


def options_of(sequence: int) -> dict[str, Any]:
    """Tell what is given with a message beside its payload."""
    options: dict[str, Any] = {}
    if sequence % 3 == 1:
        options["key"] = b"key %d" % sequence
    if sequence % 4 == 2:
        options["headers"] = {"sequence": str(sequence), "": "ü" * (sequence % 9)}
    return options


def contents(sequence: int) -> bytes:
    """Tell a message's payload: short ones, and now and then one of more than a page."""
    return payload(sequence) * (60 if sequence % 17 == 16 else 1)


def grow(queue: penstock.Queue, messages: int) -> None:
    """Append messages that tell their sequences, some of them as one."""
    until = queue.next_sequence + messages
    while (first := queue.next_sequence) < until:
        if first % 5 == 0:
            with queue.transaction() as together:
                for sequence in range(first, first + 3):
                    together.append(contents(sequence), **options_of(sequence))
        else:
            queue.append(contents(first), **options_of(first))


def stages(queue: penstock.Queue, *parts: int) -> None:
    """Append so many messages to each of several segments."""
    for index, messages in enumerate(parts):
        if index:
            roll(queue)
        grow(queue, messages)


def flushed_midway(queue: penstock.Queue) -> None:
    """Leave durable messages, marks that say so, and messages that are not durable."""
    stages(queue, 12, 9)
    queue.flush()
    grow(queue, 12)


def poisoned_midway(queue: penstock.Queue) -> None:
    """Leave a log whose flush failed."""
    flushed_midway(queue)
    poison(queue)


def with_spare(queue: penstock.Queue) -> None:
    """Leave a spare, as a queue has that is appended to for a while."""
    stages(queue, 20)
    # It is made in the background, a moment after the first message.
    while not (queue.path / ".spare").exists():
        time.sleep(0.01)


def dropped(queue: penstock.Queue) -> None:
    """Leave a queue whose first segments retention has let go."""
    stages(queue, 9, 9, 9, 9, 9)
    queue.compact(RetentionPolicy(segments=3))


# What is made: a name, the work, whether the queue is closed behind it, and how it is opened.
KINDS: list[tuple[str, Callable[[penstock.Queue], None], bool, dict[str, Any]]] = [
    ("closed", lambda queue: stages(queue, 15, 11, 9, 7), True, {"index_every": 4}),
    ("killed", lambda queue: stages(queue, 15, 11, 7), False, {"index_every": 2}),
    ("flushed", flushed_midway, False, {}),
    ("crc64", lambda queue: stages(queue, 25), True, {"checksum": "crc64-nvme"}),
    ("spare", with_spare, False, {"index_every": 8}),
    ("dropped", dropped, True, {}),
    ("empty", lambda _queue: None, True, {}),
]


def corpus() -> list[Specimen]:
    """Make one queue of each kind, and one that has seen several boots."""
    with tempfile.TemporaryDirectory() as folder:
        made = [
            specimen(Path(folder) / name, name, [work], is_closed=is_closed, options=options)
            for name, work, is_closed, options in KINDS
        ]
        works: list[Callable[[penstock.Queue], None]] = [flushed_midway, with_spare]
        several = Path(folder) / "several boots"
        made.append(specimen(several, "several boots", works, is_closed=True, options={}))
        rescued = Path(folder) / "rescued"
        works = [poisoned_midway, with_spare]
        made.append(specimen(rescued, "rescued", works, is_closed=False, options={}, boots=1))
    return made


def specimen(
    root: Path,
    name: str,
    works: list[Callable[[penstock.Queue], None]],
    *,
    is_closed: bool,
    options: dict[str, Any],
    boots: int = 2,
) -> Specimen:
    """Let each work happen in a boot of its own or all in one, and the last one in this."""
    older = root.with_name(f"{name} before")
    for index, work in enumerate(works):
        is_last = index == len(works) - 1

        def run(work: Callable[[penstock.Queue], None] = work, *, is_last: bool = is_last) -> None:
            if boots > 1 and not is_last:
                clock.boot_id = lambda: OTHER_BOOT
            queue = opened(root, **{"segment_bytes": SEGMENT_BYTES, **options})
            grow(queue, 3)
            keep(queue.path, older)
            work(queue)
            if is_last and is_closed:
                queue.close()
            die()

        killed(run)
    files = read_files(root)
    durable = int.from_bytes(
        files[".control"][LAYOUT["CONTROL_DURABLE_SEQUENCE_AT"] :][:8], "little"
    )
    return Specimen(name, files, read_files(older), sequences_in(root), is_closed, durable)


def keep(root: Path, copy: Path) -> None:
    """Copy the files of a queue as they are now."""
    write_files(copy, read_files(root))


def read_files(root: Path) -> Files:
    """Read all files below a folder."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(paths)}


def write_files(root: Path, files: Files) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def sequences_in(root: Path) -> list[int]:
    """List what is there before anything happens to it, as a reader that changes nothing has it."""
    with penstock.open(root, read_only=True) as queue:
        messages = list(queue.tailer())
        assert all(message.payload == contents(message.sequence) for message in messages)
        return [message.sequence for message in messages]


def settle(root: Path) -> None:
    """Make the page of a copied queue one of this very file, as it was of the original."""
    path, lock = root / ".control", root / ".lock"
    content = path.read_bytes()
    id_at = LAYOUT["CONTROL_QUEUE_ID_AT"]
    fd = os.open(path, os.O_RDWR)
    try:
        control = Control(fd, True, -1, 0)
        queue_id, boot_id = content[id_at : id_at + 16], clock.boot_id()
        control.initialise(queue_id, boot_id, path.stat().st_ino, lock.stat().st_ino)
    finally:
        os.close(fd)
