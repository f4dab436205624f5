"""The defects that a service, a client's library or a store can have, one file a part.

A defect occurs now and then, not at each of its chances, so that runs differ. An occurrence does
not suffice for a verdict. `reached` decides, for each checker, whether an effect reached a client
in such a way that the definition leaves no other verdict than false.
"""
