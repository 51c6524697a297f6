"""Networks and their optimisers as arrays, so that checkpoints need no pickle."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .run import Arrays, packed, under


def network_state(module: nn.Module, optimiser: torch.optim.Optimizer) -> Arrays:
    """Return the weights of a network, with prefix "module.", and the moments of its optimiser, with prefix "adam."."""
    moments = optimiser.state_dict()["state"]
    adam = {f"{n}.{name}": value.cpu().numpy() for n, each in moments.items() for name, value in each.items()}
    return packed({"module": {n: value.cpu().numpy() for n, value in module.state_dict().items()}, "adam": adam})


def restore_network(module: nn.Module, optimiser: torch.optim.Optimizer, state: Arrays) -> None:
    """Restore a network and its optimiser from `network_state`."""
    module.load_state_dict({name: torch.tensor(array) for name, array in under(state, "module.").items()})
    moments: dict[int, dict[str, Tensor]] = {}
    for key, array in under(state, "adam.").items():
        number, name = key.split(".")
        moments.setdefault(int(number), {})[name] = torch.tensor(array)
    optimiser.load_state_dict(optimiser.state_dict() | {"state": moments})
