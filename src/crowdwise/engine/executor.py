"""Where the shards of the answers lie, and how work is sent to them.

A model never sees all answers at once. It sends functions to shards: each gets a shard and the local state that the
last function left there, and returns statistics that add up over shards. They are added in shard order, so the numbers
do not depend on where or when a shard was worked on. Local state (posteriors above all) stays where it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ..kernels.layout import summed

Shard = TypeVar("Shard")


class Executor(ABC, Generic[Shard]):
    """Runs functions on shards."""

    @abstractmethod
    def update(self, work: Callable[..., tuple[Any, Any]], *args: Any) -> Any:
        """Call work(shard, local, *args) -> (local, statistics) on every shard, keep the new local states, and return
        the sum of the statistics."""

    @abstractmethod
    def each(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        """What work(shard, local, *args) returns, shard by shard."""

    def total(self, work: Callable[..., Any], *args: Any) -> Any:
        """The sum of what work(shard, local, *args) returns."""
        return summed(self.each(work, *args))


class InMemory(Executor[Shard]):
    """Shards that lie in this process, worked on one after another; each uses all threads."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = tuple(shards)
        self.locals: list[Any] = [None] * len(self.shards)

    def update(self, work: Callable[..., tuple[Any, Any]], *args: Any) -> Any:
        def one(n: int, shard: Shard) -> Any:
            self.locals[n], statistics = work(shard, self.locals[n], *args)
            return statistics

        return summed(one(n, shard) for n, shard in enumerate(self.shards))

    def each(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        return (work(shard, local, *args) for shard, local in zip(self.shards, self.locals, strict=True))
