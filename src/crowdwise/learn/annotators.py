"""Models of annotators that are trained by gradient steps together with a network: the crowd layer and annot-mix.

Both are modules that turn class probabilities into probabilities of labels. A worker is given as a mixture of two
workers, `share` of `one` and the rest of `other`, as mixup needs it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

EMBEDDING = 128  # size of the embedding of a worker


class CrowdLayerModule(nn.Module):
    """The crowd layer of Rodrigues and Pereira (2018): a matrix per worker, by which class probabilities are multiplied
    before a second softmax. It starts with the identity."""

    def __init__(self, workers: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(classes).repeat(workers, 1, 1))  # (W, label, class)

    def forward(self, log_p: Tensor, one: Tensor, other: Tensor, share: Tensor) -> Tensor:
        """(n, K) log-probabilities of labels, from log-probabilities (n, K) of classes."""
        part = share[:, None, None]
        weight = part * self.weight[one] + (1 - part) * self.weight[other]
        return torch.log_softmax((weight @ log_p.exp()[:, :, None])[:, :, 0], 1)

    def log_matrices(self) -> Tensor:
        """(W, K, K) log-probabilities of each label, given that the network is certain of a class."""
        return torch.log_softmax(self.weight, 1).transpose(1, 2)


class AnnotMixModule(nn.Module):
    """A confusion matrix per worker from an embedding of the workers, as in annot-mix (Herde et al. 2024).

    `eta` is the initial accuracy. In the publication the matrix also depends on the features of the task.
    """

    def __init__(self, workers: int, classes: int, eta: float, dropout: float = 0.5) -> None:
        super().__init__()
        self.classes = classes
        self.embed = nn.Linear(workers, EMBEDDING)
        self.hidden = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(EMBEDDING, EMBEDDING), nn.BatchNorm1d(EMBEDDING), nn.ReLU()
        )
        self.out = nn.Linear(EMBEDDING, classes * classes)
        with torch.no_grad():
            odds = math.log(eta * max(classes - 1, 1) / (1 - eta))
            self.out.bias.copy_((odds * torch.eye(classes)).flatten())

    def forward(self, log_p: Tensor, one: Tensor, other: Tensor, share: Tensor) -> Tensor:
        """(n, K) log-probabilities of labels, from log-probabilities (n, K) of classes."""
        part, embedding = share[:, None], self.embed.weight.T
        place = part * embedding[one] + (1 - part) * embedding[other] + self.embed.bias
        return torch.logsumexp(log_p[:, :, None] + self._log_matrices(place), 1)

    def _log_matrices(self, place: Tensor) -> Tensor:
        return torch.log_softmax(self.out(self.hidden(place)).reshape(-1, self.classes, self.classes), 2)

    def log_matrices(self) -> Tensor:
        """(W, K, K) log-probabilities of each label, given the class."""
        return self._log_matrices(self.embed.weight.T + self.embed.bias)
