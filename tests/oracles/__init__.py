"""Oracles of the history checkers: the definitions of docs/design.md, read literally.

An oracle has `draw(random) -> (ops, test)`, a small random history, and `verdict(ops, test)`, the
set of verdicts that the definition allows for it. They enumerate; they share no code with the
checkers beyond the record of an op (checker.history.Op). soak.py holds each checker to its own.
What several of them need, or what one is made of, stands in drawn, holds, waiting and fairness.
"""
