"""Several producers and tailers on one queue; one producer is killed in the middle, and all add up.

Run it with `make demo`, or by `python examples/demo.py --seconds 5 --producers 3`.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import penstock
from penstock import RollStrategy

SEGMENT_BYTES = 8 << 20
LAST_WORD = b"that is all"
# What a producer says it appended, and the pipe it says it through.
REPORT_EVERY = 1000


def produce(path: Path, name: str, seconds: float, report: Connection) -> None:
    """Append numbered messages, and tell after each thousand how many came back as appended."""
    with penstock.open(path) as queue:
        until = time.monotonic() + seconds
        count = 0
        while time.monotonic() < until:
            for _ in range(REPORT_EVERY):
                queue.append(f"{name} {count}".encode(), key=name.encode())
                count += 1
            report.send(count)


def consume(path: Path, report: Connection) -> None:
    """Follow the queue to the last word, and count what came from whom, in which order."""
    seen: Counter[bytes] = Counter()
    faults = 0
    with penstock.open(path) as queue:
        for message in queue.tailer().follow(timeout=timedelta(seconds=30)):
            if message.payload == LAST_WORD:
                break
            name, number = message.payload.split()
            faults += int(number) != seen[name]
            seen[name] += 1
    report.send((seen, faults))


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--producers", type=int, default=3)
    parser.add_argument("--tailers", type=int, default=2)
    return parser.parse_args()


def main() -> int:
    """Run the whole scene and print the account."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        return run(Path(folder) / "orders", options)


def run(path: Path, options: argparse.Namespace) -> int:
    """Start everybody, kill one producer half-way, and hold what was read against what was said."""
    context = multiprocessing.get_context("spawn")
    penstock.open(
        path, segment_bytes=SEGMENT_BYTES, roll=RollStrategy.by_size(SEGMENT_BYTES)
    ).close()
    print(f"A queue in {path}, segments of {SEGMENT_BYTES >> 20} MiB.")
    tailers, producers = [], []
    for _ in range(options.tailers):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=consume, args=(path, writer))
        process.start()
        tailers.append((process, reader))
    for number in range(options.producers):
        reader, writer = context.Pipe(duplex=False)
        name = f"producer-{number}"
        process = context.Process(target=produce, args=(path, name, options.seconds, writer))
        process.start()
        writer.close()
        producers.append((name, process, reader))
    print(f"{len(producers)} producers append, {len(tailers)} tailers follow, each a process.")
    began = time.monotonic()
    victim, process, _ = producers[0]
    said = dict.fromkeys((name for name, _, _ in producers), 0)
    kill_at = began + options.seconds / 2
    while any(process.is_alive() for _, process, _ in producers):
        listen(producers, said)
        if time.monotonic() > kill_at and process.is_alive():
            os.kill(process.pid or 0, signal.SIGKILL)
            print(f"kill -9 {process.pid}: {victim} is dead, the others go on.")
            kill_at = float("inf")
    listen(producers, said)
    taken = time.monotonic() - began
    with penstock.open(path) as queue:
        queue.append(LAST_WORD)
        counts = [reader.recv() for _, reader in tailers]
        for tailer, _ in tailers:
            tailer.join()
        return account(queue, said, counts, taken)


def listen(
    producers: list[tuple[str, multiprocessing.context.SpawnProcess, Connection]],
    said: dict[str, int],
) -> None:
    """Take in what the producers say."""
    for name, _, reader in producers:
        with contextlib.suppress(EOFError):
            while reader.poll(0.02):
                said[name] = reader.recv()


def account(
    queue: penstock.Queue,
    said: dict[str, int],
    counts: list[tuple[Counter[bytes], int]],
    taken: float,
) -> int:
    """Print who appended what and who read it; 1 if anything is lost, doubled or out of order."""
    stats, seen = queue.stats(), counts[0][0]
    print(f"\n{'producer':<12}{'said appended':>15}{'read by each tailer':>22}")
    faults = sum(fault for _, fault in counts)
    for name, count in said.items():
        read = {found[name.encode()] for found, _ in counts}
        # The killed one may have appended what it could not tell any more, never the reverse.
        faults += len(read) != 1 or min(read) < count
        print(f"{name:<12}{count:>15,}{' / '.join(f'{number:,}' for number in read):>22}")
    total = sum(seen.values())
    print(f"\n{total:,} messages, {total / taken:,.0f} a second while everybody read along.")
    print(f"{stats.segments} segments, {stats.disk_bytes >> 20} MiB on the disk.")
    if stats.takeovers:
        print(f"Locks taken over from the dead producer: {stats.takeovers}.")
    report = queue.verify()
    faults += len(report.faults)
    print(f"Every checksum verified: {report.messages:,} messages, {len(report.faults)} faults.")
    print("Nothing lost, nothing doubled, nothing out of order." if not faults else "FAULTS!")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
