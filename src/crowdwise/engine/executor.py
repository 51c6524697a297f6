"""Executors, which hold the shards of the answers and run functions on them.

A model never accesses all answers together. It sends functions to shards: each receives a shard and the local state
that the last function returned, and returns statistics that add up over shards. They are added in shard order, so the
results do not depend on where or when a shard is processed. Local state, mainly posteriors, stays in the shard.

A shard may have an attribute `subset`: it then has only some rows and workers of the table. Functions receive the
parameters of these rows and workers, and their statistics are added at the right places of the whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ..kernels.layout import add_shard, narrow

Shard = TypeVar("Shard")


class Executor(ABC, Generic[Shard]):
    """Runs functions on shards."""

    @abstractmethod
    def update(self, work: Callable[..., tuple[Any, Any]], *args: Any, each: Sequence[Any] | None = None) -> Any:
        """Call work(shard, local, *args) -> (local, statistics) on every shard, keep the new local states, and return
        the sum of the statistics. With `each`, shard n gets each[n] as its last argument."""

    @abstractmethod
    def each(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        """Yield work(shard, local, *args) for every shard, in order."""

    @abstractmethod
    def total(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return the sum of work(shard, local, *args) over shards."""


class InMemory(Executor[Shard]):
    """Shards in the memory of this process, processed one after another; each uses all threads."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = tuple(shards)
        self.locals: list[Any] = [None] * len(self.shards)

    def update(self, work: Callable[..., tuple[Any, Any]], *args: Any, each: Sequence[Any] | None = None) -> Any:
        total = None
        for n, shard in enumerate(self.shards):
            subset = getattr(shard, "subset", None)
            own = () if each is None else (each[n],)
            self.locals[n], statistics = work(shard, self.locals[n], *narrow(args, subset), *own)
            total = add_shard(total, statistics, subset)
        return total

    def each(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        for shard, local in zip(self.shards, self.locals, strict=True):
            yield work(shard, local, *narrow(args, getattr(shard, "subset", None)))

    def total(self, work: Callable[..., Any], *args: Any) -> Any:
        total = None
        for shard, found in zip(self.shards, self.each(work, *args), strict=True):
            total = add_shard(total, found, getattr(shard, "subset", None))
        return total
