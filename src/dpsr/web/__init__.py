"""What the two web edges share: an extra, an address, connections with limits, a guard, pages.

`serve` answers for a release, `studio` leads a curator to one. Neither is imported unless its command is given.
"""
