"""Penstock, a persistent queue: append at memory speed, follow it from other processes.

The way of a message: `log` takes it in, `read` hands it out, `queue` is what users open.
"""

from penstock import errors
from penstock.log.transaction import Transaction
from penstock.message import Priority
from penstock.options import FlushMode, RetentionPolicy, RollStrategy
from penstock.queue import Queue, open
from penstock.read import Message, ReadBatch, Tailer
from penstock.stats import CompactResult, QueueStats, VerifyReport

__all__ = [
    "CompactResult",
    "FlushMode",
    "Message",
    "Priority",
    "Queue",
    "QueueStats",
    "ReadBatch",
    "RetentionPolicy",
    "RollStrategy",
    "Tailer",
    "Transaction",
    "VerifyReport",
    "errors",
    "open",
]
