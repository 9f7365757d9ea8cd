"""Every method by name, with what it protects and how it is priced: one contract for all studies.

Private methods first, ours among them; then models without privacy; then variants of our own pipeline, which only a
study that asks for them runs. Anybody's own method is written `module:factory`. A factory is called as
factory(epsilon, delta, seed) and returns something that fits, predicts and ranks like a `Recommender`. Write
`factory.private = False` for one that takes no budget: it is then run once and not once per epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError, PrivacyError
from dpsr.evaluate.baselines import ALS, MF, Bias, Constant, ItemKNN, SVDpp
from dpsr.evaluate.baselines.bias import MostRatedFirst, OwnMean
from dpsr.evaluate.baselines.factorisation import LARGE_BATCH
from dpsr.evaluate.contract import OUR_UNIT, Method, Price, R, Recommender, Unit, WithoutPrivacy
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.berlioz import Berlioz
from dpsr.evaluate.peers.dp_als import DPALS
from dpsr.evaluate.peers.dp_als_tuned import TunedDPALS
from dpsr.evaluate.peers.dp_sgd import DPSGD, Denoised
from dpsr.evaluate.peers.dp_sgd_user import UserDPSGD
from dpsr.evaluate.peers.mcsherry_mironov import McSherryMironov
from dpsr.evaluate.peers.noisy_bias import NoisyBias
from dpsr.evaluate.peers.noisy_ratings import NoisyRatings
from dpsr.evaluate.peers.objective import ObjectivePerturbation
from dpsr.evaluate.peers.shin import LocalMF
from dpsr.evaluate.pipelines import (
    PEOPLE_UNITS,
    RECIPES,
    DefaultPipeline,
    PaperPipeline,
    PeoplePipeline,
    PersonalisedPipeline,
)

OURS, CONSTANT, BIAS, REFERENCE = "dpsr", "constant", "bias", "als"
"""Our method, the least that must be beaten, the honest yardstick, and the model to whose lists others are compared."""

PERSONALISED = "dpsr-personalised"
"""Our method, with everybody's own raw ratings for their own predictions."""

OWN_MEAN = "own-mean"
"""Everybody's own mean, shrunk: what people can know without anybody else."""

PEOPLE = {"rating": "dpsr-rating", "user": "dpsr-user"}
"""Our methods that protect people, by unit, with everybody's own raw ratings for their own predictions."""

LISTED = "dpsr-user-listed"
"""Our method that protects people, with the list of items declared public, as others of that unit take it to be."""

NEARLY_NO_NOISE = 20.0
"""The epsilon at which our pipeline shows what it would do without noise."""


def recipe_name(recipe: str) -> str:
    """The name of our pipeline with a part replaced.

    >>> recipe_name("without window")
    'dpsr-without-window'
    """
    return f"{OURS}-{recipe.replace(' ', '-')}"


def _private(
    name: str, build: Callable[..., Recommender], unit: Unit = "rating value", price: Price = "pure", **facts: Any
) -> Method[Recommender]:
    return Method(name, build, unit, price, **facts)


def _nearly_noiseless(_: float | None, delta: float, noise_seed: int, learner_seed: int) -> Recommender:
    return DefaultPipeline(NEARLY_NO_NOISE, delta, noise_seed, learner_seed)


def _without_privacy(name: str, learn: Callable[[RawRatings, int], Predictor]) -> Method[Recommender]:
    def build(_: float | None, __: float, ___: int, learner_seed: int) -> Recommender:
        return WithoutPrivacy(learn, learner_seed)

    return Method(name, build, budgeted=False)


def _baseline(name: str, model: Callable[[int], Any]) -> Method[Recommender]:
    return _without_privacy(name, lambda r, seed: model(seed).fit(r.mask, r.values, r.scale))


def _most_rated(ratings: RawRatings, _: int) -> Predictor:
    return MostRatedFirst(ratings.mask.item_counts.astype(np.float64), float(ratings.values.mean()))


METHODS: dict[str, Method[Recommender]] = {
    method.name: method
    for method in (
        _private(OURS, DefaultPipeline),
        _private("dpsr-paper", PaperPipeline),
        _private("dpsr-as-published", partial(PaperPipeline, as_published=True), price="not kept"),
        _private("laplace-als", NoisyRatings),
        _private("laplace-mf", partial(NoisyRatings, learner="mf")),
        _private("gaussian-als", partial(NoisyRatings, noise="gaussian"), price="with delta"),
        _private("gaussian-mf", partial(NoisyRatings, noise="gaussian", learner="mf"), price="with delta"),
        _private("dp-sgd-mf", DPSGD, "rating (add/remove)", "with delta"),
        _private("denoised-dp-mf", Denoised, "rating (add/remove)", "with delta"),
        _private("objective-mf", ObjectivePerturbation),
        _private("objective-mf-local", partial(ObjectivePerturbation, local=True), joint=True),
        _private("berlioz-input", Berlioz),
        _private("berlioz-als", partial(Berlioz, sweeps=True)),
        _private("mcsherry-mironov", McSherryMironov, price="with delta", joint=True),
        _private("mcsherry-mironov-svd", partial(McSherryMironov, svd=True), price="with delta", joint=True),
        _private("shin-ldp-mf", LocalMF, "user", joint=True),
        _private("dp-als", DPALS, "user", "with delta", joint=True),
        _private("dp-als-tuned", TunedDPALS, "user", "with delta", joint=True),
        _private("dp-sgd-user", UserDPSGD, "user", "with delta", joint=True),
        _private("noisy-bias", NoisyBias, "user", "with delta", joint=True),
        _private("noisy-level", partial(NoisyBias, items=False), "user", "with delta", joint=True),
        _baseline(CONSTANT, lambda _: Constant()),
        _without_privacy("popularity", _most_rated),
        _baseline(OWN_MEAN, lambda seed: OwnMean(random_state=seed)),
        _baseline(BIAS, lambda seed: Bias(random_state=seed)),
        _baseline("item-knn", ItemKNN),
        _baseline(REFERENCE, lambda seed: ALS(random_state=seed)),
        _baseline("svd++", SVDpp),
        _baseline("paper-mf", lambda seed: MF(batch_size=LARGE_BATCH, random_state=seed)),
        _private(PERSONALISED, PersonalisedPipeline, joint=True, variant_of=OURS),
        *(
            _private(
                name, partial(PeoplePipeline, unit=unit), PEOPLE_UNITS[unit], "with delta", joint=True, variant_of=OURS
            )
            for unit, name in PEOPLE.items()
        ),
        _private(LISTED, partial(PeoplePipeline, listed=True), "user", "with delta", joint=True, variant_of=OURS),
        _private("dpsr-20", _nearly_noiseless, budgeted=False, variant_of=OURS),
        *(
            _private(recipe_name(name), partial(DefaultPipeline, recipe=recipe), variant_of=OURS)
            for name, recipe in RECIPES.items()
        ),
    )
}
"""In the order in which tables show them."""


def compared_methods() -> list[str]:
    """The names of all methods but variants of our own: what a comparison runs unless told otherwise."""
    return [name for name, method in METHODS.items() if method.variant_of is None]


def benchmarked_methods(unit: str | None = None) -> list[str]:
    """What a benchmark runs: all that are compared, and ours at every unit; or those of one of our units alone, ours
    first, with the models without privacy beside them."""
    everything = [*compared_methods(), *PEOPLE.values()]
    if unit is None:
        return everything
    units: dict[str, Unit] = {"value": OUR_UNIT, **PEOPLE_UNITS}
    if unit not in units:
        raise ParameterError(f"unit is one of {', '.join(units)}, found {unit!r}.")
    ours = PEOPLE.get(unit, OURS)
    ours_listed = [LISTED] if unit == "user" else []
    return [
        ours,
        *ours_listed,
        *(name for name in everything if METHODS[name].unit in (units[unit], "none") and name != ours),
    ]


def ours_at(unit: str) -> str:
    """Our method whose epsilon means the same as that of a method with this unit, as tables name it."""
    return next((PEOPLE[word] for word, name in PEOPLE_UNITS.items() if unit.startswith(name)), OURS)


def method(name: str) -> Method[Recommender]:
    """The entry of a name, or of `module:factory`; what is not known is an error that says what is."""
    return entry_of(METHODS, name)


def chosen_methods(names: Sequence[str]) -> list[Method[Recommender]]:
    """The entries of some names, each once."""
    return entries_of(METHODS, names)


def build(
    name: str, epsilon: float | None, delta: float, noise_seed: int, learner_seed: int | None = None
) -> Recommender:
    """The method with its budget and seeds, not fitted. One without a budget takes no epsilon."""
    return built(method(name), epsilon, delta, noise_seed, learner_seed)


def entry_of(methods: Mapping[str, Method[R]], name: str) -> Method[R]:
    """The same in any registry."""
    if ":" in name:
        return _own_method(name)
    if name not in methods:
        raise ParameterError(f"methods are {', '.join(methods)}, or module:factory for your own; found {name}.")
    return methods[name]


def entries_of(methods: Mapping[str, Method[R]], names: Sequence[str]) -> list[Method[R]]:
    """The entries of some names in any registry, each once."""
    if not names:
        raise ParameterError(f"methods are {', '.join(methods)}, or module:factory for your own; found none.")
    return [entry_of(methods, name) for name in dict.fromkeys(names)]


def built(entry: Method[R], epsilon: float | None, delta: float, noise_seed: int, learner_seed: int | None = None) -> R:
    """An entry of any registry with its budget and seeds."""
    if entry.budgeted and epsilon is None:
        raise PrivacyError(
            f"the method {entry.name} is private and needs an epsilon, found none. Give one, for example 1."
        )
    return entry.build(epsilon, delta, noise_seed, noise_seed if learner_seed is None else learner_seed)


def _own_method(name: str) -> Method[Any]:
    module, _, attribute = name.partition(":")
    try:
        factory = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ParameterError(
            f"a method of your own is written module:factory and must be importable, found {name!r} ({error}). "
            "Run from the folder that holds the module, or install it."
        ) from error

    def build_own(epsilon: float | None, delta: float, noise_seed: int, _: int) -> Any:
        return factory(epsilon, delta, noise_seed)

    return Method(name, build_own, budgeted=bool(getattr(factory, "private", True)))
