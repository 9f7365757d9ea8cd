"""What noisy sums over people say about items: levels, cells, coefficients, factors. Arrays in, arrays out.

Nothing here sees a person. Every answer comes with the deviation of its noise, which is known exactly, so that every
estimate is a posterior and shrinks by itself where the noise drowns the answer.
"""
