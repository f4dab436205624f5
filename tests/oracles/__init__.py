"""Oracles of the history checkers: the definitions of docs/design.md, read literally.

An oracle has `draw(random) -> (ops, test)`, a small random history, and `verdict(ops, test)`, the
set of verdicts that the definition allows for it. They enumerate; they share no code with the
checkers beyond the record of an op (checker.history.Op). soak.py compares each checker with its own
oracle. The modules drawn, holds, waiting and fairness contain the parts that several of them share.
"""
