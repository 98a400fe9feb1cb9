"""Kills, stops, interrupts and damages at random: `python -m tests.torture --help`."""

from __future__ import annotations

import sys

from tests.torture import kill9, lines

if __name__ == "__main__":
    seed, n = int(sys.argv[2]), int(sys.argv[3])
    f = {"kill9": lambda: kill9.torture(seed, n, 4), "lines": lambda: lines.deaths(seed,n), "interrupts": lambda: lines.interrupts(seed,n)}[sys.argv[1]]()
    print(f)
    print("\n".join(f.faults))
