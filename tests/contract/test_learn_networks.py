"""Networks: mixup, averaged weights and the best epoch; worker sides that are trained by gradient steps."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from learning import GRADIENT, experts, fit
from sklearn.base import clone

import crowdwise as cw
from crowdwise.errors import FeatureError, Interrupted, ParameterError
from crowdwise.learn import Network, load
from crowdwise.learn.annotators import AnnotMixModule, CrowdLayerModule
from crowdwise.learn.by_gradient import AnnotMix, CrowdLayer

SMALL = {"hidden": 16, "epochs": 4, "batch_size": 32}


def learner(X: Any, **settings: Any) -> Any:
    return Network(**{**SMALL, **settings}).learner(np.asarray(X, np.float32), 2, np.random.default_rng(0))


def two_piles(n: int = 400, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 5)) + 1.5 * y[:, None], np.eye(2)[y]


# ------------------------------------------------------------------------------------------------- the truth side


@pytest.mark.parametrize("more", [{"mixup": 1.0}, {"averaging": 0.9}, {"batch_norm": True, "hidden": (16, 8)}])
def test_options_of_training_still_learn(more: dict[str, Any]) -> None:
    X, Z = two_piles()
    made = learner(X, epochs=15, rate=1e-2, **more)
    made.imitate(Z)
    assert (made.logits().argmax(1) == Z.argmax(1)).mean() > 0.9


def test_mixup_trains_on_rows_between_the_rows() -> None:
    """The logits of a row are less extreme if the network has seen mixtures of both classes."""
    X, Z = two_piles()
    sizes = []
    for mixup in (0.0, 2.0):
        made = learner(X, epochs=40, rate=1e-2, holdout=0.0, mixup=mixup)
        made.imitate(Z)
        sizes.append(np.abs(np.diff(made.logits(), axis=1)).mean())
    assert sizes[1] < 0.8 * sizes[0]


def test_inputs_are_mixed_by_the_shares_returned() -> None:
    X, _ = two_piles(50)
    made, one, other = learner(X), torch.arange(10), torch.arange(10, 20)
    inputs, part = made.mixed(one, other, 1.0)
    assert ((part > 0) & (part < 1)).all()
    assert part.unique().numel() == 10
    assert torch.allclose(inputs, part[:, None] * made.rows[one] + (1 - part[:, None]) * made.rows[other])
    inputs, part = made.mixed(one, other, 0.0)
    assert torch.equal(inputs, made.rows[one])
    assert (part == 1).all()


def test_averaged_weights_make_the_predictions_and_are_saved(tmp_path: Path) -> None:
    sim = experts(0, 200, 200)
    model = fit(sim, Network(**SMALL, averaging=0.95), "confusion", random_state=0)
    own = model.learner_
    raw = own.module.eval()(own.rows[:5]).detach().numpy()
    assert not np.allclose(raw, own.logits()[:5])
    again = load(model.save(tmp_path))
    assert np.allclose(again.predict_proba(sim.features), model.predict_proba(sim.features), atol=1e-6)


def test_the_best_epoch_is_kept() -> None:
    """Labels without any relation to the features: further epochs only fit noise."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 40)), np.eye(2)[rng.integers(2, size=300)]
    made = learner(X, epochs=60, rate=1e-2, dropout=0.0, weight_decay=0.0, holdout=0.3)
    scores = []
    step = made._epoch

    def watched(slope: Any) -> None:
        step(slope)
        p = torch.log_softmax(torch.from_numpy(made.predicted(made.rows)), 1).numpy()
        scores.append(float((Z[made.held] * p[made.held]).sum()))

    made._epoch = watched
    made.imitate(Z)
    p = torch.log_softmax(torch.from_numpy(made.logits()), 1).numpy()
    assert len(scores) < 60
    assert scores[-1] < max(scores)
    assert float((Z[made.held] * p[made.held]).sum()) == pytest.approx(max(scores), abs=1e-6)


def test_images_always_use_the_same_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1, 6, 6)).astype(np.float32)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 2))
    made, flat = (Network(net).learner(x, 2, np.random.default_rng(0)) for net, x in ((module, X), (None, X[:, 0, 0])))
    assert (made.threads, flat.threads) == (2, 1)


def images_of_two_kinds(n: int = 160) -> tuple[Any, Any]:
    """Noise with a bright left or right third, at a random height."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 1, 8, 9)).astype(np.float32)
    for row, kind in enumerate(y):
        X[row, 0, rng.integers(6) :, 6 * kind : 6 * kind + 3] += 3.0
    return X, np.eye(2)[y]


def small_module() -> Any:
    torch.manual_seed(0)
    head = torch.nn.Flatten(), torch.nn.Linear(4 * 6 * 7, 2)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), *head)


@pytest.mark.parametrize("more", [{}, {"precision": "bfloat16"}, {"threads": 1}])
def test_images_are_learnt_in_every_precision(more: dict[str, Any]) -> None:
    X, Z = images_of_two_kinds()
    made = Network(small_module(), epochs=15, rate=1e-2, **more).learner(X, 2, np.random.default_rng(0))
    made.imitate(Z)
    assert (made.logits(X).argmax(1) == Z.argmax(1)).mean() > 0.9
    assert made.on_rows.dtype == np.float64
    assert made.threads == more.get("threads", 2)


def test_augmented_images_are_mirrored_and_shifted() -> None:
    X = np.zeros((500, 2, 8, 9), np.float32)
    X[:, 0, 4, 2], X[:, 1, 4, 2] = 1.0, 2.0
    made = Network(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2)), augment=2, scale=False)
    inputs = made.learner(X, 2, np.random.default_rng(0)).mixed(*[torch.arange(500)] * 2, 0.0)[0].numpy()
    assert inputs.shape == X.shape
    rows, channels, y, x = np.nonzero(inputs)
    assert np.array_equal(inputs[rows, channels, y, x], channels + 1)
    assert np.array_equal(y[channels == 0], y[channels == 1])
    assert set(y) == {2, 3, 4, 5, 6}
    assert set(x) == {0, 1, 2, 3, 4} | {4, 5, 6, 7, 8}
    assert len(rows) == 1000
    predicted = made.learner(X, 2, np.random.default_rng(0)).logits(X)
    assert np.allclose(predicted, predicted[0]), "predictions see the images as they are"


def test_only_images_are_augmented() -> None:
    with pytest.raises(FeatureError, match=r"augment is 2, but the features have shape \(400, 5\)"):
        learner(two_piles()[0], augment=2)
    with pytest.raises(FeatureError, match=r"shape \(160, 1, 8, 9\) and there is no module"):
        Network(augment=2).learner(images_of_two_kinds()[0], 2, np.random.default_rng(0))


def test_modules_may_view_their_inputs_as_rows() -> None:
    """`view` fails on images with channels last, the faster layout."""

    class Viewing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fold, self.out = torch.nn.Conv2d(1, 4, 3), torch.nn.Linear(168, 2)

        def forward(self, x: Any) -> Any:
            h = self.fold(x)
            return self.out(h.view(len(h), -1))

    X, Z = images_of_two_kinds()
    made = Network(Viewing(), epochs=15, rate=1e-2).learner(X, 2, np.random.default_rng(0))
    made.imitate(Z)
    assert (made.logits(X).argmax(1) == Z.argmax(1)).mean() > 0.9


@pytest.mark.parametrize("hidden", [0, (), (8, 0), 1.5, "wide"])
def test_wrong_layers_are_refused(hidden: Any) -> None:
    with pytest.raises(ParameterError, match="hidden is"):
        learner(two_piles()[0], hidden=hidden)


# ------------------------------------------------------------------------------------------ sides trained by gradient


def test_the_crowd_layer_is_a_matrix_and_a_second_softmax() -> None:
    module = CrowdLayerModule(3, 4)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(rng.normal(size=(3, 4, 4))))
    p, worker = rng.dirichlet(np.ones(4), 5), np.array([0, 1, 2, 1, 0])
    found = module(
        torch.log(torch.from_numpy(p).float()), torch.from_numpy(worker), torch.from_numpy(worker), torch.ones(5)
    )
    scores = np.einsum("nlk,nk->nl", module.weight.detach().numpy()[worker], p)
    expected = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    assert np.allclose(found.detach().numpy(), expected, atol=1e-5)
    assert np.allclose(np.exp(module.log_matrices().detach().numpy()).sum(2), 1, atol=1e-6)


def test_annot_mix_starts_with_the_accuracy_given_and_mixes_workers() -> None:
    torch.manual_seed(0)
    module = AnnotMixModule(6, 3, eta=0.8).eval()
    with torch.no_grad():
        module.out.weight.zero_()
    matrices = np.exp(module.log_matrices().detach().numpy())
    assert np.allclose(matrices[:, range(3), range(3)], 0.8, atol=1e-6)
    torch.nn.init.normal_(module.out.weight)
    log_p = torch.log_softmax(torch.randn(4, 3), 1)
    one, other = torch.tensor([0, 1, 2, 3]), torch.tensor([3, 2, 1, 0])
    alone, swapped = (module(log_p, a, b, torch.ones(4)) for a, b in ((one, other), (one, one)))
    half, mirrored = (module(log_p, a, b, torch.full((4,), 0.5)) for a, b in ((one, other), (other, one)))
    assert torch.allclose(alone, swapped, atol=1e-5)
    assert torch.allclose(half, mirrored, atol=1e-5)
    assert not torch.allclose(alone, half, atol=1e-3)
    logs = module.log_matrices()[one]
    assert torch.allclose(alone, torch.logsumexp(log_p[:, :, None] + logs, 1), atol=1e-5)


@pytest.mark.parametrize("name", GRADIENT)
def test_bad_workers_are_recognised(name: str) -> None:
    sim = cw.simulate.experts(300, seed=4)
    bad = pl.Series(np.random.default_rng(0).permutation(sim.answers.frame()["label"].to_numpy()))
    frame = sim.answers.frame()
    guess = (frame["worker"] == frame["worker"].unique().sort()[0]).to_numpy()
    frame = frame.with_columns(label=pl.when(pl.Series(guess)).then(bad).otherwise(pl.col("label")))
    model = cw.CrowdClassifier(Network(rate=1e-2, weight_decay=1e-4), name, random_state=0)
    model.fit(sim.features, frame, tasks=sim.truth["task"])
    skill = model.result_.workers.sort("worker")["skill"].to_list()
    assert skill[0] == min(skill)
    assert model.score(sim.features, sim.truth["label"]) > 0.8
    assert model.result_.converged
    assert (np.diff(model.result_.trace["objective"].to_numpy()) >= 0).all()


def test_weights_are_those_of_the_epoch_reported() -> None:
    sim = experts(1, 300, 300)
    model = fit(sim, Network(rate=3e-2, holdout=0.3), CrowdLayer(max_iter=25), random_state=1)
    best = model.result_.params
    assert np.allclose(model.learner_.predicted(model.learner_.rows), best.logits, atol=1e-5)
    assert float(best.objective) == model.result_.trace["objective"].max()


@pytest.mark.parametrize("classifier", ["logistic", "tree"])
def test_a_side_trained_by_gradient_needs_a_network(classifier: str) -> None:
    from sklearn.tree import DecisionTreeClassifier

    made = DecisionTreeClassifier() if classifier == "tree" else classifier
    with pytest.raises(
        ParameterError, match=r"crowd-layer is trained together with a torch network\. Use classifier='mlp'"
    ):
        fit(experts(0, 200, 200), made, "crowd-layer")


def test_settings_are_checked() -> None:
    for wrong in ({"eta": 1.0}, {"mixup": -1.0}, {"rate": 0.0}, {"max_iter": 0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            AnnotMix(**wrong)


def test_annot_mix_on_music(shared_data: Path) -> None:
    with np.load(shared_data / "music_genre" / "features.npz", allow_pickle=False) as file:
        X, task, split = file["x"], file["task"], file["split"]
    truth = dict(pl.read_parquet(shared_data / "music_genre" / "truth.parquet").select("task", "label").rows())
    labels = cw.Labels(pl.read_parquet(shared_data / "music_genre" / "answers.parquet"))
    net = Network(hidden=(256, 128), batch_norm=True, dropout=0.5, rate=1e-2, weight_decay=0.0, holdout=0.0)
    train, test = split == "train", split == "test"
    model = cw.CrowdClassifier(net, "annot-mix", random_state=0).fit(X[train], labels, tasks=task[train])
    assert np.mean(model.predict(X[test]) == [truth[each] for each in task[test]]) > 0.69


@pytest.mark.parametrize("side", [CrowdLayer(max_iter=5), AnnotMix(max_iter=5)], ids=["crowd-layer", "annot-mix"])
def test_a_fit_that_is_interrupted_twice_is_resumed_bit_for_bit(side: Any) -> None:
    """The second time before the network is trained any further."""
    sim = experts(0, 120, 10)
    rows = {"X": sim.features, "answers": sim.answers, "tasks": sim.truth["task"]}
    model = cw.CrowdClassifier(Network(**SMALL), side, random_state=1)
    whole, run = clone(model).fit(**rows), cw.Run()
    for calls in (3, 0):
        with pytest.raises(Interrupted) as broken:
            clone(model).fit(**rows, run=dataclasses.replace(run, stop=iter([*[False] * calls, True]).__next__))
        run = cw.Run(resume=broken.value.checkpoint)
    again = clone(model).fit(**rows, run=run)
    assert again.result_.trace.equals(whole.result_.trace)
    assert again.result_.posterior.tobytes() == whole.result_.posterior.tobytes()
