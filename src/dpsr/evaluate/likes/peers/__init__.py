"""Private methods of lists from the literature, at the level of people: **for experiments only**.

noisy_popularity     noisy counts of presence, one list for everybody
dp_ials              implicit alternating least squares with adaptive weights and noisy sufficient statistics
two_tower            DP-SGD on a small two-tower network
randomised_baskets   everybody reports a randomised basket; no curator is trusted
"""
