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


class InTurn(Executor[Shard]):
    """Shards that are processed one after another in this process; each uses all threads."""

    @abstractmethod
    def walk(self) -> Iterator[tuple[int, Shard, Any]]:
        """Yield every shard with its number and its local state, in order."""

    @abstractmethod
    def keep(self, number: int, local: Any) -> None:
        """Keep the local state of a shard."""

    def update(self, work: Callable[..., tuple[Any, Any]], *args: Any, each: Sequence[Any] | None = None) -> Any:
        total = None
        for number, shard, local in self.walk():
            subset = getattr(shard, "subset", None)
            own = () if each is None else (each[number],)
            new, statistics = work(shard, local, *narrow(args, subset), *own)
            self.keep(number, new)
            total = add_shard(total, statistics, subset)
        return total

    def each(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        for _, shard, local in self.walk():
            yield work(shard, local, *narrow(args, getattr(shard, "subset", None)))

    def total(self, work: Callable[..., Any], *args: Any) -> Any:
        total = None
        for _, shard, local in self.walk():
            subset = getattr(shard, "subset", None)
            total = add_shard(total, work(shard, local, *narrow(args, subset)), subset)
        return total


class InMemory(InTurn[Shard]):
    """Shards in the memory of this process."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = tuple(shards)
        self.locals: list[Any] = [None] * len(self.shards)

    def walk(self) -> Iterator[tuple[int, Shard, Any]]:
        return ((n, shard, self.locals[n]) for n, shard in enumerate(self.shards))

    def keep(self, number: int, local: Any) -> None:
        self.locals[number] = local
