"""Shared by several scripts: servers as local processes, proxies, programs in other languages.

`fencepost reproduce` copies the parts that a script uses into the file that it writes. The first
line of a module's docstring is the comment above them there.
"""
