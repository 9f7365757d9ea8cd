"""Lists of people who rate, with and without the stretches of the order of ids in which their own items lie.

    python -m benchmarks.people_lists ../shared/data [--seeds 3] [--epsilons 1,3,10] [--unit user]

Recall@20 of held-out ratings that are liked (`relevance_threshold`), ratings split 80 / 20, delta = 1e-5, list of items
declared. The last column has the same with places by a hash of the id: an order that means nothing. Not private: noise
is seeded, and held-out ratings are raw.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.people_ablation import dealt
from dpsr import DPSR, Ratings
from dpsr.evaluate.metrics.lists import hits_of, mean_of_known, recall_at
from dpsr.evaluate.metrics.ranking import top_lists
from dpsr.evaluate.metrics.scores import relevance_threshold
from dpsr.evaluate.sets import sets_in_folder
from dpsr.release.people import PersonalisedPeople
from dpsr.types import Affinity, Mask, PersonalModel
from dpsr.types.id_order import IdOrder

DELTA, LENGTH = 1e-5, 20


def recall(model: PersonalModel, liked: Mask) -> float:
    """Mean over people of whom something liked was held out."""
    assert isinstance(model.mask, Mask)
    lists = top_lists(model, model.mask, np.arange(liked.n_users), LENGTH)
    return mean_of_known(recall_at(hits_of(lists, liked), liked.user_counts, LENGTH))


def by_popularity(model: PersonalModel) -> PersonalModel:
    """The same people, all of whom meet what is popular."""
    assert model.affinity is not None
    everybody = np.zeros_like(model.affinity.users)
    everybody[:, 0] = 1.0
    return replace(model, affinity=Affinity(everybody, model.affinity.items))


def main() -> None:
    """One line for every set and epsilon."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people_lists")
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", default="1,3,10")
    parser.add_argument("--unit", default="user")
    options = parser.parse_args()
    print("| set | ε | popularity | and one's own stretches | places by a hash |\n|---|---|---|---|---|")
    for one in sets_in_folder(options.data):
        ratings = one.read()
        for epsilon in map(float, options.epsilons.split(",")):
            found = np.mean([compared(ratings, options.unit, epsilon, seed) for seed in range(options.seeds)], axis=0)
            print(f"| {one.name} | {epsilon:g} | {' | '.join(f'{value:.4f}' for value in found)} |", flush=True)


def compared(ratings: Ratings, unit: str, epsilon: float, seed: int) -> list[float]:
    """Recall by popularity, with stretches, and with stretches of an order that means nothing."""
    train, test = ratings.split(0.2, seed=seed)
    liked = test.mask.select(test.values >= relevance_threshold(ratings.scale))
    fitted = DPSR(epsilon, unit=unit, delta=DELTA, items=ratings.mask.item_ids, random_state=seed).fit(train)
    personal = fitted.personalise(train)
    assert isinstance(personal, PersonalisedPeople)
    model = personal.model()
    with patch.object(IdOrder, "places", dealt):
        without_meaning = PersonalisedPeople(replace(personal.release), train).model()
    return [recall(one, liked) for one in (by_popularity(model), model, without_meaning)]


if __name__ == "__main__":
    main()
