"""bayes-scdc and scdc: merges of components, drawn components, the second term of (17), and convolutions."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.answers import Pairs
from crowdwise.engine import Run
from crowdwise.errors import FeatureError, ParameterError
from crowdwise.pairs import BayesScdc, Scdc
from crowdwise.pairs.model import PairAnswers

torch = pytest.importorskip("torch")

from crowdwise.pairs.deep import amortised, bayes, networks, posteriors  # noqa: E402
from crowdwise.pairs.deep.merging import merge_components  # noqa: E402
from crowdwise.pairs.deep.posteriors import Globals, Placed  # noqa: E402
from crowdwise.pairs.deep.relations import Relations  # noqa: E402

RNG = np.random.default_rng(0)


def mixture_at_its_optimum(z: Any, answers: PairAnswers) -> tuple[Any, Any, Placed]:
    """A model with q(z), fixed places of the items, and the posteriors that are optimal for both."""
    rng = np.random.default_rng(1)
    centres = np.repeat([[0.0, 0.0], [0.1, 0.0], [4.0, 4.0]], 20, axis=0)
    mean = torch.as_tensor(centres + 0.3 * rng.normal(size=(60, 2))).float()
    second = 0.01 * torch.eye(2) + mean[:, :, None] * mean[:, None, :]
    x = Placed(mean, second, 10 * torch.eye(2).repeat(60, 1, 1))
    settings = BayesScdc(parts=z.shape[1], epochs=1, scale="none")
    nets = networks.build_networks(mean, networks.Shape(2, (4,)), "gaussian")
    model = bayes._Model(mean, nets, Relations(answers, 60), settings)
    model.table = z
    model.update_globals(z, x, model.relations.full_batch(), step=1.0)
    return model, x, z


def bound(model: Any, x: Placed, z: Any) -> float:
    """The bound without the likelihood of the features, which does not depend on z."""
    e = posteriors.expected(model.now)
    whole = model.relations.full_batch()
    total = float(posteriors.local_bound(e, z, x).double().sum()) + model.answer_bound(e, z, whole)
    return total - posteriors.divergence(model.now, model.prior)


def answers_within(same: bool) -> PairAnswers:
    """Answers about pairs of the first and the second 20 items."""
    left = np.arange(20)
    ones = np.ones(20, bool)
    return PairAnswers(left, left + 20, np.zeros(20, np.int64), ones if same else ~ones, np.ones(20), 60, 1)


def soft_assignment(K: int = 4) -> Any:
    """(60, K) q(z): one component for every 20 items, a little mixed; the last is nearly empty."""
    z = np.full((60, K), 0.01)
    z[np.arange(60), np.repeat(np.arange(3), 20)] = 1.0
    return torch.as_tensor(z / z.sum(1, keepdims=True)).float()


@pytest.mark.parametrize("same", [True, False])
def test_the_gain_of_a_merge_is_the_change_of_the_bound(same: bool) -> None:
    """The bound before and after is computed from scratch, with the posteriors of the workers fixed."""
    model, x, z = mixture_at_its_optimum(soft_assignment(), answers_within(same))
    workers, before = (model.now.alpha, model.now.beta), bound(model, x, z)
    model.table = z
    related = z.T @ model.messages(posteriors.expected(model.now), model.relations.full_batch())
    now, merged, gain = merge_components(model.now, model.prior, z, related)
    assert gain > 0
    model.table = merged
    model.update_globals(merged, x, model.relations.full_batch(), step=1.0)
    model.now.alpha, model.now.beta = workers
    for f in fields(Globals):
        assert torch.allclose(getattr(now, f.name), getattr(model.now, f.name), atol=1e-4), f.name
    assert bound(model, x, merged) - before == pytest.approx(gain, abs=2e-2)


def test_components_are_merged_where_features_overlap_and_answers_agree() -> None:
    counts = {}
    for same in (True, False):
        model, _, z = mixture_at_its_optimum(soft_assignment(), answers_within(same))
        model.now.alpha = model.now.beta = torch.tensor([[100.0, 1.0]], dtype=torch.float64)
        related = z.T @ model.messages(posteriors.expected(model.now), model.relations.full_batch())
        _, merged, _ = merge_components(model.now, model.prior, z, related)
        counts[same] = len(torch.unique(merged.argmax(1)))
    assert counts == {True: 2, False: 3}


def test_no_merge_leaves_everything_as_it_is() -> None:
    z = torch.nn.functional.one_hot((torch.arange(60) >= 40).long(), 2).float()
    model, _, _ = mixture_at_its_optimum(z, answers_within(True))
    now, merged, gain = merge_components(model.now, model.prior, z, torch.zeros(2, 2))
    assert gain == 0
    assert torch.equal(merged, z)
    assert all(torch.equal(getattr(now, f.name), getattr(model.now, f.name)) for f in fields(Globals))


def test_merging_can_be_turned_off() -> None:
    sim = cw.simulate.pinwheel(seed=1)
    kept = {}
    for merge in (True, False):
        model = BayesScdc(scale="none", merge=merge, epochs=40)
        kept[merge] = model.fit(Pairs.none(sim.features[0]), features=sim.features, run=Run(seed=1)).sizes.height
    assert kept[True] < kept[False]


def test_the_bound_from_drawn_components_is_unbiased() -> None:
    """With many components, the mean over draws is the exact sum, and so is the mean of its gradient."""
    torch.manual_seed(0)
    o = torch.rand(6, 9)
    model = amortised._Model(o, networks.Shape(2, (5,)), "bernoulli", 24, 0)
    with torch.no_grad():
        model.classifier.location.weight.mul_(80)
    weight = model.classifier.location.weight

    def mean(times: int) -> tuple[Any, Any]:
        """Means over independent draws, of 500 copies of every item at once."""
        total, slope = torch.zeros(6), torch.zeros_like(weight)
        for _ in range(times // 500):
            value = model.bounds(o.repeat(500, 1))
            slope += torch.autograd.grad(value.sum(), weight)[0]
            total += value.detach().reshape(500, 6).sum(0)
        return total / times, slope / times

    drawn, drawn_slope = mean(15_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amortised, "MAX_EXACT_COMPONENTS", 24)
        exact, exact_slope = mean(3000)
    assert torch.allclose(drawn, exact, atol=0.06)
    assert torch.allclose(drawn_slope, exact_slope, atol=0.05 * float(exact_slope.abs().max()) + 0.01)


def test_improbable_components_are_left_out() -> None:
    torch.manual_seed(0)
    model = amortised._Model(torch.rand(40, 9), networks.Shape(2, (5,)), "bernoulli", 50, 0)
    with torch.no_grad():
        model.classifier.location.bias[3] = 9.0
    passed: list[int] = []
    terms = model._terms
    model._terms = lambda o, row, k: (passed.append(len(row)), terms(o, row, k))[1]  # type: ignore[func-returns-value]
    model.bounds(torch.rand(40, 9))
    assert 40 <= passed[0] < 60


def test_the_second_term_is_the_gradient_through_the_items() -> None:  # eq. (17)
    """The derivative of the bound by one expectation, through q(z) and q(x) alone, against finite differences."""
    model, _, _ = mixture_at_its_optimum(soft_assignment(), answers_within(True))
    e = posteriors.expected(model.now)
    precision, pull = torch.full((60, 2), 3.0), 3.0 * model.o

    def value(q: posteriors.Expected) -> Any:
        z = soft_assignment()
        x = posteriors.place(q, precision, pull, z)
        z = torch.softmax(q.log_share + posteriors.densities(q, x.mean, x.second), 1)
        x = posteriors.place(q, precision, pull, z)
        return posteriors.local_bound(e, z, x).sum()

    q = posteriors.Expected(*(t.clone().requires_grad_() for t in e))
    (-value(q)).backward()
    path = posteriors.path_term(q, -1.0)
    for name, index, natural in (("log_share", 1, path.counts[1]), ("offset", 2, path.nu[2])):
        step, ends = 1e-2, []
        for sign in (1, -1):
            moved = getattr(e, name).clone()
            moved[index] += sign * step
            ends.append(float(value(e._replace(**{name: moved}))))
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(float(natural), abs=0.02)


def test_steps_to_impossible_parameters_are_not_made() -> None:
    model, _, _ = mixture_at_its_optimum(soft_assignment(), answers_within(True))
    bad = Globals(*(getattr(model.now, f.name).clone() for f in fields(Globals)))
    bad.kappa[0], bad.second[1], bad.alpha[0, 0] = -1.0, -torch.eye(2), -0.5
    bad.counts[2] += 1
    kept = posteriors.where_valid(bad, model.now)
    assert torch.equal(kept.kappa, model.now.kappa)
    assert torch.equal(kept.second[:2], model.now.second[:2])
    assert torch.equal(kept.alpha, model.now.alpha)
    assert kept.counts[2] == model.now.counts[2] + 1


def test_the_second_term_changes_the_fit_and_stays_sound() -> None:
    sim = cw.simulate.pinwheel(seed=0)
    found = [
        BayesScdc(epochs=30, second_term=second).fit(sim.pairs, features=sim.features, run=Run(seed=0))
        for second in (False, True)
    ]
    assert not np.array_equal(found[0].params.chances, found[1].params.chances)
    assert np.isfinite(found[1].trace["objective"].to_numpy()).all()


@pytest.mark.parametrize("model", [BayesScdc, Scdc])
def test_convolutional_networks_place_and_simulate_images(model: Any) -> None:
    X = (np.random.default_rng(0).random((40, 8, 12)) * 255).astype(np.uint8)
    ids = np.arange(40)
    made = model(epochs=2, image=(8, 12, 1), hidden=(16,), parts=4)
    result = made.fit(Pairs.none(ids), features=(ids, X), run=Run(seed=0))
    assert result.params.samples.shape[2:] == (8, 12)
    weights = [name for name, array in result.space.items() if name.endswith("weight") and array.ndim == 4]
    assert len(weights) >= 4
    _, P = made.place_items(result.space, X)
    assert P.min() >= 0
    assert P.sum(1).max() <= 1 + 1e-5


def test_sizes_that_equal_the_number_of_pixels_are_possible() -> None:
    X = (np.random.default_rng(0).random((40, 4, 4)) * 255).astype(np.uint8)
    ids = np.arange(40)
    for made in (Scdc(epochs=1, image=(4, 4, 1), latent=16, hidden=(8,), parts=3), BayesScdc(parts=1, epochs=2)):
        assert made.fit(Pairs.none(ids), features=(ids, X), run=Run(seed=0)).sizes.height <= 3


@pytest.mark.parametrize("image", [(8, 12), (6, 8, 3), (8, 8, 0), 8, (8, 8, 1.5)])
def test_impossible_sizes_of_images_are_refused(image: Any) -> None:
    with pytest.raises(ParameterError, match="bayes-scdc: image is"):
        BayesScdc(image=image)


def test_sizes_of_images_must_match_the_features() -> None:
    ids = np.arange(30)
    with pytest.raises(FeatureError, match="items have 64 features, which is not 8 x 8 x 3"):
        BayesScdc(image=(8, 8, 3), epochs=1).fit(Pairs.none(ids), features=(ids, np.ones((30, 64))))


def test_scaling_as_a_whole_keeps_directions_of_little_variance_small() -> None:
    X = RNG.normal(size=(200, 3)) * [5.0, 1.0, 0.1]
    spread = {
        scale: networks.fit_scaling(X, None, scale).apply(X).std(0).numpy() for scale in ("whole", "columns", "none")
    }
    assert spread["whole"] / spread["whole"][0] == pytest.approx(X.std(0) / X.std(0)[0], rel=1e-4)
    assert float(np.sqrt((spread["whole"] ** 2).mean())) == pytest.approx(1.0, rel=0.01)
    assert spread["columns"] == pytest.approx(np.ones(3), rel=0.01)
    assert spread["none"] == pytest.approx(X.std(0), rel=0.01)
