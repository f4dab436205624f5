"""Simulate a lock service, its clients and its faults, so that the truth of each run is known.

Whether a checker is right can be decided only against known events. Here they are known by
construction: the service is sound, or has one named defect, and records when that defect had an
effect that clients could see. Everything runs on virtual time and from one seed. The simulation
shares with the checkers only the record of an op (checker.history.Op) and the choice of checkers
for a test (Checker.applies); the nemesis writes its facts as the real one does
(nemesis.families.facts).

    world      virtual time; operating-system processes that run, are paused and die
    network    links that delay, lose and reorder, and can be cut
    cluster    the servers: which are up, which reach a majority
    service    the lock service: leases, sessions, queue, tokens, shared holds
    resource   the registers that the locks protect, with their guards
    library    a client's lock library, where each hold has a lease of its own
    sessions   the same, where holds live by the client's session
    clients    the program of a client: ops, unknown outcomes, successors
    nemesis    faults and their receipts, as the real director writes them
    plan       the parts of a run; drawing: how it is drawn; strikes: its faults
    simulation one run, from its plan to its history
    truth      the true events, and those that clients could see; promises: of order and return
    defects    the defects: which checker must detect each, which others may
    judgement  verdicts compared with the truth
    soak       many runs, and their counts
"""
