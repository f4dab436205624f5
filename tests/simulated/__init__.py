"""Simulate a lock service, its clients and its faults, so that the truth of each run is known.

Whether a checker is right can be decided only against known events. Here they are known by
construction: the service is sound, or has one named defect, and records when that defect had an
effect that clients could see. Everything runs on virtual time and from one seed. The simulation
shares with the checkers only the record of an op (checker.history.Op), the choice of checkers for
a test (Checker.applies) and the product's default bound; the nemesis writes its facts as the real
one does (nemesis.families.facts).

    world      virtual time; operating-system processes that run, are paused and die
    network    links that delay, lose and reorder, and can be cut; line: one process' messages
    cluster    the servers: which are up, which reach a majority
    service    the lock service as one state machine: leases, sessions, queue, shared holds
    state      its records; tokens: how it numbers its grants
    quorum     servers that know nothing of each other, each with leases and a clock of its own
    resource   the registers that the locks protect, with their guards
    library    what every lock library of a client has; leases, sessions, redlock: one each
    clients    the program of a client; sections: its ops; events: how it reports them
    nemesis    faults and their receipts, as the real director writes them
    plan       the parts of a run; drawing: how it is drawn; suiting: what its defect needs;
               strikes: its faults
    simulation one run, from its plan to its history
    truth      the true events, and the facts that decide a verdict
    kinds      the defects, one file a part: the checkers that must detect each, and those that may
    defects    all of them by name
    reached    whether a defect reached a client for certain; promises: of order; dead: of locks
               that nobody could have
    judgement  verdicts compared with the truth
    soak       many runs, and their counts
"""
