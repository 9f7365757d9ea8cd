"""Lists from interactions: what a list method is, how it is tested, and every method by name. NOT PRIVATE.

contract     what fits, what scores, what is protected       protocol   held-out people, held-out interactions
baselines    popularity, item-kNN, EASE, iALS                registry   every method by name
peers        private methods of the literature               pipeline   ours
"""
