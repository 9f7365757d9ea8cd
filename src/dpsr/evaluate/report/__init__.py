"""What is made of results: tidy rows, tables to read, comparisons with p-values, charts.

    tidy           one row per run, means over seeds          comparisons    who is ahead of whom
    tables         Markdown and CSV                           breakdowns     what one number hides, as points
    charts         lines, levels and bars, drawn              files          what is written, and documents refilled

Everything here was computed from raw ratings: **not private**.
"""
