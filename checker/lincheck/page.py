"""Stub replaced below."""


def page(file, verdict, evidence):
    return ""
