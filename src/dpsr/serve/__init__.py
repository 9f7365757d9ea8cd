"""`dpsr serve`: a release behind an address that answers, and never says more than the release does."""
