"""OUT: reading a log in order, from any place in it."""

from penstock.kernel import Message
from penstock.read.batch import ReadBatch
from penstock.read.tailer import Start, Tailer

__all__ = ["Message", "ReadBatch", "Start", "Tailer"]
