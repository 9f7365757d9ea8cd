"""People who do not exist, drawn from a released item side: what they meet, how they rate.

Arrays in, arrays out. Nothing here can see a rating: the item side is all there is, so whatever is drawn from it is
post-processing and costs nothing. The generator is seeded with a public number; it hides nothing and need not.
"""
