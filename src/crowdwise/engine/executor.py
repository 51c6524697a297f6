"""Executors, which hold the shards of the answers and run functions on them.

A model never accesses all answers together. It sends functions to shards: each receives a shard and the local state
that the last function returned, and returns statistics that add up over shards. They are added in shard order, so the
results do not depend on where or when a shard is processed. Local state, mainly posteriors, stays in the shard.
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
        """Yield work(shard, local, *args) for every shard, in order."""

    def total(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return the sum of work(shard, local, *args) over shards."""
        return summed(self.each(work, *args))


class InMemory(Executor[Shard]):
    """Shards in the memory of this process, processed one after another; each uses all threads."""

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
