"""What a test of several processes may ask for."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.processes.children import Child


@pytest.fixture
def play() -> Iterator[Callable[..., Child]]:
    """Start processes by their role; all of them end with the test."""
    children: list[Child] = []

    def start(role: str, *arguments: Any, boot_id: str = "") -> Child:
        child = Child(role, *arguments, boot_id=boot_id)
        children.append(child)
        return child

    yield start
    for child in children:
        child.let_go()
