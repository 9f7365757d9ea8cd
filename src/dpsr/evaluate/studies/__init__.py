"""Studies: which sets, methods, budgets, seeds, tables and charts. All of them run by `evaluate.runner`.

paper        the paper's experiment, its printed figures beside ours
frontier     accuracy against epsilon on real sets, with targets
ablation     what each idea of our pipeline contributes
benchmark    every method side by side, with learners, attacks and tests of differences
likes        the same where nobody rates: lists from interactions
"""
