"""Private recommenders from the literature: **for experiments only**.

Noise here is seeded, and most of it is floating-point, so nothing in this room is private enough to release. What each
method protects, and what it treats as public, is its `Protection`; `docs/peers.md` has one section per method.

    floating, accounting      continuous noise with its price, and what prices come to
    averages, least_squares, adaptive      steps that several methods take
    noisy_ratings             Laplace or Gaussian noise on every rating, then an ordinary recommender
    dp_sgd, dp_sgd_user, objective, berlioz, mcsherry_mironov, shin, dp_als      one method, or two close ones, each
    reference                 what the nominal epsilon of published code comes to
"""
