"""A simulated lock service, its clients and its faults: runs of which the truth is known.

Whether a checker is right can be told only where what really happened is known. Here it is, by
construction: the service is sound, or has one named defect, and notes when that defect had an
effect that clients could see. Everything runs on virtual time and from one seed. Nothing is shared
with the checkers but the record of an op (checker.history.Op), and which of them a test has
something for (Checker.applies); the nemesis writes its facts as the real one does
(nemesis.families.facts).

    world      virtual time; operating-system processes that run, are paused and die
    network    links that delay, lose and reorder, and can be cut
    cluster    the servers: which are up, which reach a majority
    service    the lock service: leases, sessions, queue, tokens, shared holds
    resource   the registers that the locks protect, with their guards
    library    what a client's lock library does, where each hold has a lease of its own
    sessions   the same, where holds live by the client's session
    clients    the program of a client: ops, unknown outcomes, successors
    nemesis    faults and their receipts, as the real director writes them
    plan       what a run is made of; drawing: how it is drawn; strikes: its faults
    simulation one run, from its plan to its history
    truth      what really happened, and what clients could see of it; promises: of order and return
    defects    the defects: which checker must find each, which others may
    judgement  verdicts held to the truth
    soak       many runs, and their counts
"""
