# SPDX-License-Identifier: GPL-2.0
"""The configurations of the model, and its mutations."""

from dataclasses import dataclass


@dataclass
class Run:
    """One verifier: options are those of bounds.h and the model."""

    name: str
    what: str
    options: str
    mutation: bool = False
    large: bool = False
    bits: int = 0               # bitstate search, with 2^bits bits

    def title(self):
        """For the report."""
        kind = "mutation" if self.mutation else "configuration"
        return f"{kind} {self.name}: {self.what}"


def config(name, what, options):
    """Small enough for every check: no error."""
    return Run(name, what, options)


def large(name, what, options, bits=0):
    """For `make all-configs`: no error."""
    return Run(name, what, options, large=True, bits=bits)


def mutation(switch, what, options, name=None):
    """A rule taken out: an error must appear."""
    return Run(name or switch, what, f"{options} {switch}", mutation=True)


def lives(options, late=1):
    """Bounds for QPs and a record of work that are the code's (lives.pml)."""
    return f"LIVES {options} LATE={late}"


BOTH = "NA=1 NB=1 FAULTS=1 ASKS=2"
PACKETS = "NA=1 PKTS=2 FAULTS=1 ASKS=2"
APPERR = "NA=1 FAULTS=1 ASKS=2 BAD=0"
ATOMICS = lives("NA=1 NB=1 FAULTS=0 MOVES=2 ASKS=2 KINDS=ATOMIC HASTE=1 ONE_FAULT", late=0)
BACK = lives("ATHOME NA=1 NB=1 FAULTS=0 BACKS=1 ASKS=2")
SLEEPER = lives("ATHOME NA=2 FAULTS=0 BACKS=1 ASKS=2 PROVIDER")
SENDS = lives("NA=2 PKTS=2 FAULTS=1 ASKS=2 KINDS=SEND,SEND")
UNFENCED = lives("NA=1 FAULTS=0 ASKS=3 UNKNOWN=1 SPURIOUS=2")
LEADS = lives("NA=1 FAULTS=1 ASKS=9 LEAD=9 ONE_FAULT")
RESTARTS = lives("NA=1 FAULTS=1 ASKS=3 RESTARTS=1")
OWN = lives("NA=1 FAULTS=1 ASKS=3 BAD=0 SPURIOUS=1")
RECEIVE = lives("NA=1 FAULTS=1 ASKS=3 BADR=0 KINDS=SEND")
LATE_CQE = lives("NA=2 FAULTS=2 ASKS=3 GHOST=1")
OUT = "NA=1 FAULTS=2 ASKS=9 BRIEF OUTAGE"
OUTAGE = f"{OUT} LATE=1"
ALARMS = "NA=2 FAULTS=2 SPURIOUS=1 ASKS=16 LATE=1 ONE_FAULT"

RUNS = [
    config("one", "one direction", "NA=2 FAULTS=1 ASKS=2"),
    config("both", "two directions", f"{BOTH} LATE=1"),
    config("packets", "operations of three packets", "NA=1 PKTS=3 FAULTS=1 ASKS=2"),
    config("packets2", "two operations of two packets",
           "NA=2 PKTS=2 FAULTS=1 ASKS=2 LATE=1"),
    config("failback", "a fault, and a move", f"{BOTH} MOVES=1 LATE=1"),
    config("backup-dies", "a fault of either path", "NA=1 FAULTS=2 ASKS=3 LATE=0"),
    config("operator", "moves without a fault, both ways",
           "NA=1 NB=1 FAULTS=0 ASKS=2 MOVES=2 LATE=1 RESENDS=1"),
    config("move-fault", "a move meets a fault", "NA=1 FAULTS=1 ASKS=2 MOVES=1 LATE=1"),
    config("move-loss", "a move, the session loses a message, a NIC cannot be fenced",
           "NA=1 FAULTS=0 ASKS=2 MOVES=1 UNKNOWN=1 LOSS=1 LATE=1"),
    config("move-end", "a move, the application ends its QP",
           "NA=1 FAULTS=0 ASKS=2 MOVES=1 APPENDS=1 LATE=1"),
    config("alarms", "false alarms", "NA=1 NB=1 FAULTS=0 ASKS=2 SPURIOUS=2 LATE=1"),
    config("loss", "the session loses a message",
           "NA=1 FAULTS=1 ASKS=2 LOSS=1 RESENDS=1 LATE=1"),
    config("reorder", "the session reorders and repeats",
           "NA=1 FAULTS=1 ASKS=2 UNORDERED RESENDS=1 LATE=0"),
    config("reorder-move", "the session reorders, a move meets a fault",
           "NA=1 FAULTS=0 ASKS=2 MOVES=1 SPURIOUS=1 UNORDERED LATE=0"),
    config("unfenced", "a NIC cannot be fenced",
           "NA=1 NB=1 FAULTS=1 ASKS=2 UNKNOWN=1 LATE=1"),
    config("unfenced-loss", "a NIC cannot be fenced, the session loses a message",
           "NA=1 FAULTS=1 ASKS=2 UNKNOWN=1 LOSS=1 LATE=1"),
    config("app-error", "an operation is wrong in itself", "NA=2 FAULTS=1 ASKS=2 BAD=1 LATE=2"),
    config("app-ends", "the application ends its QP at any time", "NA=1 FAULTS=1 ASKS=2 APPENDS=1 LATE=1"),
    config("restart", "a node restarts", "NA=1 FAULTS=1 ASKS=2 RESTARTS=1 LATE=1"),
    config("flap", "a short flap: no error shown",
           "NA=1 NB=1 FAULTS=1 ASKS=6 LATE=1 BRIEF"),
    config("one-path", "one path breaks: no error shown",
           "NA=1 NB=1 FAULTS=1 ASKS=9 LATE=1 MOVES=1 ONE_FAULT"),
    config("outage", "both paths are gone for a while, at any moment: no error shown", OUTAGE),

    config("lives", "the code's record: one direction", lives("NA=2 FAULTS=1 ASKS=3")),
    config("lives-both", "two directions", lives("NA=1 NB=1 FAULTS=1 ASKS=3")),
    config("lives-packets", "operations of three packets",
           lives("NA=2 PKTS=3 FAULTS=1 ASKS=2")),
    config("lives-read", "a READ, executed writes behind it",
           lives("NA=2 PKTS=2 FAULTS=1 ASKS=3 KINDS=READ,WRITE")),
    config("lives-send", "receives written in part", SENDS),
    config("lives-imm", "an immediate begins again, and consumes one receive",
           lives("NA=2 PKTS=2 FAULTS=1 ASKS=2 KINDS=IMM,SEND")),
    config("lives-atomic", "an atomic whose answer may be lost",
           lives("NA=2 FAULTS=1 ASKS=3 KINDS=ATOMIC,WRITE")),
    config("lives-moves", "moves settle: no answer of an atomic is lost", ATOMICS),
    config("lives-move-fault", "a move meets a fault",
           lives("NA=1 FAULTS=1 MOVES=1 ASKS=2")),
    config("lives-move-loss", "a move is called off",
           lives("NA=1 FAULTS=0 MOVES=1 ASKS=2 LOSS=1")),
    config("back", "the application's own QP is handed back, two directions", BACK),
    config("back-sleeper", "the provider may sleep, a thread may be stopped while it posts", SLEEPER),
    config("back-fault", "handed back, a fault",
           lives("ATHOME NA=2 FAULTS=1 BACKS=1 ASKS=3", late=0)),
    config("back-loss", "the session loses a message",
           lives("ATHOME NA=1 NB=1 FAULTS=0 BACKS=1 ASKS=2 LOSS=1")),
    config("back-reorder", "the session reorders and repeats",
           lives("ATHOME NA=1 FAULTS=0 BACKS=1 ASKS=2 UNORDERED RESENDS=1")),
    config("back-atomic", "no answer of an atomic is lost, no error shown",
           lives("ATHOME NA=1 NB=1 FAULTS=0 BACKS=1 MOVES=1 ASKS=3 KINDS=ATOMIC HASTE=1 ONE_FAULT", late=0)),
    config("back-ends", "the application ends its QP at any time",
           lives("ATHOME NA=1 FAULTS=0 BACKS=1 ASKS=2 APPENDS=1")),
    config("back-restart", "a node restarts", lives("ATHOME NA=1 FAULTS=0 BACKS=1 ASKS=2 RESTARTS=1")),
    config("back-own", "an operation is wrong in itself",
           lives("ATHOME NA=2 FAULTS=0 BACKS=1 ASKS=2 BAD=1")),
    config("back-unfenced", "a QP cannot be stopped or asked",
           lives("ATHOME NA=1 FAULTS=0 BACKS=1 ASKS=3 UNKNOWN=1")),
    config("lives-unfenced", "a QP cannot be stopped or asked", UNFENCED),
    config("lives-loss", "the session loses a message", lives("NA=1 FAULTS=1 ASKS=3 LOSS=1")),
    config("lives-reorder", "the session reorders and repeats",
           lives("NA=1 FAULTS=1 ASKS=2 UNORDERED RESENDS=1", late=0)),
    config("lives-ends", "the application ends its QP at any time",
           lives("NA=1 FAULTS=1 ASKS=3 APPENDS=1")),
    config("lives-own", "an operation is wrong in itself", OWN),
    config("lives-receive", "a receive is wrong in itself", RECEIVE),
    config("lives-restart", "a node restarts", RESTARTS),
    config("lives-flap", "a short flap: no error shown",
           lives("NA=1 NB=1 FAULTS=1 ASKS=6 BRIEF")),
    config("lives-outage", "both paths are gone for a while, at any moment: no error shown",
           lives(OUT)),
    config("lives-one-path", "one path breaks: no error shown",
           lives("NA=1 NB=1 FAULTS=1 ASKS=9 ONE_FAULT")),
    config("lives-lead", "the peer asked in vain before: no error shown", LEADS),

    large("both-late", "two directions, two operations", "NA=2 NB=1 FAULTS=1 ASKS=2"),
    large("failback-late", "a fault, and a move, any deadline early", f"{BOTH} MOVES=1"),
    large("alarms-late", "false alarms, any deadline early",
          "NA=1 NB=1 FAULTS=0 ASKS=3 SPURIOUS=2"),
    large("loss-late", "the session loses a message, any deadline early",
          "NA=1 FAULTS=1 ASKS=3 LOSS=1"),
    large("unordered", "the session reorders", "NA=1 FAULTS=1 ASKS=2 UNORDERED"),
    large("reorder-late", "the session reorders and repeats, an early deadline",
          "NA=1 FAULTS=1 ASKS=2 UNORDERED RESENDS=1 LATE=1"),
    large("reorder-move-late", "the session reorders, a move meets a fault, an early deadline",
          "NA=1 FAULTS=0 ASKS=2 MOVES=1 SPURIOUS=1 UNORDERED LATE=1"),
    large("unfenced-late", "a NIC cannot be fenced, any deadline early",
          "NA=2 NB=1 FAULTS=1 ASKS=2 UNKNOWN=1"),
    large("flap-late", "a short flap, two early deadlines: no error shown",
          "NA=1 NB=1 FAULTS=1 ASKS=6 LATE=2 BRIEF"),
    large("one-path-alarms", "one path breaks, and false alarms: no error shown", ALARMS),
    large("packets-late", "two operations of two packets, a second fault",
          "NA=2 PKTS=2 FAULTS=2 ASKS=3 LATE=1"),
    large("backup-dies-late", "a fault of either path, two early deadlines",
          "NA=1 FAULTS=2 ASKS=3 LATE=2"),
    large("app-error-late", "an operation is wrong in itself, any deadline early",
          "NA=2 NB=1 FAULTS=1 ASKS=2 BAD=1"),
    large("app-ends-move", "the application ends its QP while it moves",
          f"{BOTH} APPENDS=1 MOVES=1 LATE=1"),
    large("restart-move", "a node restarts, a move", f"{BOTH} RESTARTS=1 MOVES=1 LATE=1"),
    large("all-in-one", "packets, an error of the application's, a move",
          "NA=2 PKTS=2 FAULTS=1 ASKS=3 BAD=1 MOVES=1 LATE=1"),
    large("lives-second-fault", "the code's record: a second fault",
          lives("NA=1 NB=1 FAULTS=2 ASKS=3")),
    large("lives-read-fault", "a READ, executed writes behind it, a second fault",
          lives("NA=2 PKTS=2 FAULTS=2 ASKS=3 KINDS=READ,WRITE")),
    large("lives-late-cqe", "a completion of a QP that was reset, a second fault", LATE_CQE),
    large("lives-one-path-move", "one path breaks, a move: no error shown",
          lives("NA=1 NB=1 FAULTS=1 ASKS=9 ONE_FAULT MOVES=1")),
    large("back-whole", "away by a fault, home by a move, given back",
          lives("NA=1 FAULTS=1 MOVES=1 BACKS=1 ASKS=4")),
    large("back-twice", "handed back, away, home, given back",
          lives("ATHOME NA=2 FAULTS=0 MOVES=2 BACKS=2 ASKS=4", late=0)),
    large("back-fault-late", "handed back, a fault, two early deadlines",
          lives("ATHOME NA=1 NB=1 FAULTS=1 BACKS=1 ASKS=3 PROVIDER", late=2)),
    large("lives-loss-late", "the session loses a message, resends",
          lives("NA=1 FAULTS=1 ASKS=3 LOSS=1 RESENDS=1", late=2)),
    large("lives-own-fault", "an operation is wrong in itself, false alarms",
          lives("NA=2 FAULTS=1 ASKS=3 BAD=1 SPURIOUS=1")),
    large("lives-receive-both", "a receive is wrong in itself, two directions",
          lives("NA=1 NB=1 FAULTS=1 ASKS=3 BADR=0 KINDS=SEND")),
    large("second-fault", "a second fault, any deadline early",
          "NA=2 NB=1 FAULTS=2 ASKS=3", bits=31),
    large("three-paths", "three paths", "NP=3 NA=1 FAULTS=2 ASKS=3", bits=31),

    # mutations
    mutation("W_EPOCH", "an epoch is mine + 1: two asks may share it",
             "NP=3 NA=1 NB=1 FAULTS=1 ASKS=2 LATE=2"),
    mutation("W_FENCE_FROM", "FENCE resets only the active QP",
             "NA=2 NB=1 FAULTS=1 ASKS=2"),
    mutation("W_PROGRESS_FROM", "PROGRESS counts on the active QP only",
             "NA=2 NB=1 FAULTS=2 ASKS=3"),
    mutation("W_HEALTHY", "a QP that was fenced may be called healthy", BOTH),
    mutation("W_DEADLINE", "AGREE and SYNC time out only without a session",
             "NA=1 FAULTS=1 ASKS=3 LOSS=1"),
    mutation("W_LATE_ACK", "ACK and PROGRESS do not join",
             "NA=1 FAULTS=1 ASKS=3 LATE=2 W_DEADLINE"),
    mutation("W_UNKNOWN", "UNKNOWN is forgotten by the next fence",
             "NA=2 NB=1 FAULTS=1 ASKS=2 UNKNOWN=1"),
    mutation("W_NO_SAME_PATH", "no fresh QPs on the same path",
             "NA=1 FAULTS=2 SPURIOUS=1 ASKS=5 LATE=2 ONE_FAULT"),
    mutation("M_FENCE_ONE_SIDE", "only A fences", BOTH),
    mutation("M_QUERY_FIRST", "progress is read before the fence", BOTH),
    mutation("M_CACHED_PROGRESS", "progress is read once",
             "NA=1 NB=1 FAULTS=2 ASKS=3"),
    mutation("M_COMPLETE_SENT", "what was sent is called executed", BOTH),
    mutation("M_FAIL_NO_RESET", "FAIL shows errors before it resets",
             "NA=1 NB=1 FAULTS=2 ASKS=2"),
    mutation("M_NO_NEW_PSN", "a PSN is used again", "NA=2 FAULTS=1 ASKS=3"),
    mutation("M_NO_EPOCH_CHECK", "every message is current",
             "NA=1 FAULTS=1 ASKS=3 UNORDERED LATE=2"),
    mutation("STRICT4", "a packet in flight runs after its sender saw the error", BOTH),
    mutation("M_RESUME_WHOLE", "an operation begun is sent again from its start", PACKETS),
    mutation("M_COMPLETE_PARTLY", "an operation begun is completed", PACKETS),
    mutation("M_BACK_NO_PROVIDER", "READY does not wait for the provider", SLEEPER),
    mutation("M_BACK_NO_LOCK", "the rings are begun anew while a thread posts", SLEEPER),
    mutation("M_NO_DEADLINE", "the provider is waited for without a deadline", SLEEPER),
    mutation("M_BACK_UNSETTLED", "a QP is handed back with work outstanding", BACK),
    mutation("M_BACK_UNFENCED", "a QP that was handed back is not fenced again", BACK),
    mutation("M_BACK_LIFE", "one that was handed back is taken for its first life",
             lives("ATHOME NA=2 FAULTS=1 BACKS=1 ASKS=3", late=0)),
    mutation("M_SWALLOW_APP", "the application's error is taken for a path error",
             f"{APPERR} LATE=1"),
    mutation("M_FENCE_NO_SCAN", "the fence does not look for the application's error",
             f"{APPERR} LATE=1"),
    mutation("M_FAIL_NO_SCAN", "FAIL does not look for the application's error", APPERR),
    mutation("M_NO_COOKIE", "a restarted node answers for its earlier life",
             "NA=1 FAULTS=1 ASKS=2 RESTARTS=1 LATE=1"),
    mutation("M_EMPTY_LIFE", "a life without execution hides the one before",
             lives("NA=1 FAULTS=1 ASKS=3")),
    mutation("M_ANY_LIFE", "PROGRESS of any life counts", lives("NA=1 FAULTS=1 ASKS=3")),
    mutation("M_SPARE_TWICE", "a kernel's QP is connected twice", LATE_CQE),
    mutation("M_RESUME_EARLY", "an operation is resumed one packet too early",
             lives("NA=1 PKTS=3 FAULTS=1 ASKS=2")),
    mutation("M_RESUME_LATE", "an operation is resumed one packet too late",
             lives("NA=1 PKTS=3 FAULTS=1 ASKS=2")),
    mutation("M_RESUME_SEND", "a SEND is resumed in its middle", SENDS),
    mutation("M_RECV_LOST", "a receive written in part is not posted again", SENDS),
    mutation("M_ANSWERS", "a READ that was executed is called complete",
             lives("NA=2 PKTS=2 FAULTS=1 ASKS=3 KINDS=READ,WRITE")),
    mutation("M_NO_SETTLE", "moves do not settle", ATOMICS),
    mutation("M_SETTLE_ASKER", "only the end that asks settles", ATOMICS),
    mutation("M_MOVE_ONCE", "a move does not stay for an atomic", ATOMICS),
    mutation("M_NO_RELEASE", "a move that is called off does not go on",
             lives("NA=1 FAULTS=0 MOVES=1 ASKS=2 LOSS=1")),
    mutation("W_UNKNOWN", "UNKNOWN is forgotten by the next fence", UNFENCED,
             "lives-W_UNKNOWN"),
    mutation("M_UNSTOPPED", "a QP that was not stopped goes on elsewhere",
             lives("NA=1 FAULTS=1 ASKS=3 UNKNOWN=1")),
    mutation("M_FAIL_STATUS", "FAIL does not look at the active QP's error", OWN),
    mutation("M_ERROR_FORGOTTEN", "an error from before RUN is not looked at", RECEIVE),
    mutation("M_UNPAIR_KEPT", "a restart ends the protection of an errored QP", RESTARTS),
    mutation("M_OUTAGE", "what was stopped does not wait for a path", OUTAGE),
    mutation("M_OUTAGE", "what was stopped does not wait for a path", lives(OUT), "lives-M_OUTAGE"),
    mutation("M_NO_BUSY_EPOCH", "a NACK's epoch is not learned", LEADS),
]


def controls():
    """Each mutation's bounds with the rule in place: no error."""
    known = {tuple(run.options.split()) for run in RUNS}
    for run in [run for run in RUNS if run.mutation]:
        options = run.options.split()[:-1]
        if tuple(options) in known or any(word.startswith(("W_", "M_")) for word in options):
            continue
        known.add(tuple(options))
        yield large(f"with-{run.name}", f"the rule of {run.name} in place", " ".join(options))


RUNS += list(controls())
