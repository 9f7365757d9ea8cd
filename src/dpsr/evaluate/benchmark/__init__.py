"""Every method side by side: one protocol, one tidy table, the unit of protection on every line.

    sets        what is measured on              jobs        what is to be done, and its key
    work        one job, start to end            pool        many jobs, each in a process of its own
    details     predictions and lists, on disk   table       the tidy table
    paired      tests on paired errors           claims      who is ahead of whom, with p-values
    slices      error by popularity, ...         pictures    plots beside their data
    report      Markdown                         run         the order of all this

Everything here reads raw values: its numbers are **not private**.
"""
