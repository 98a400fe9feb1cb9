"""Kills, stops, interrupts and damages at random: `python -m tests.torture --help`."""

from __future__ import annotations

import sys

from tests.torture import kill9

if __name__ == "__main__":
    f = kill9.torture(int(sys.argv[1]), int(sys.argv[2]), 4)
    print(f)
    print("\n".join(f.faults))
