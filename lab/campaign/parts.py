"""The parts of the campaign: what each tries, and how often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part.

    Parameters
    ----------
    module : str
        Its module, with ``run(count, folder, tally)``.
    count : int
        Trials of a whole campaign.
    summary : str
        What must hold, in one line.
    waits : bool
        Whether most of its time is waiting, so that others may run beside it.
    """

    module: str
    count: int
    summary: str
    waits: bool = False


PARTS: dict[str, Part] = {
    "worker-kills": Part("lab.campaign.worker_kills", 500, "workers killed: the bits of the undisturbed fit"),
    "configurations": Part("lab.campaign.configurations", 24, "workers, threads, growing, shrinking: the same bits"),
    "driver-kills": Part("lab.campaign.driver_kills", 200, "drivers killed and called again: the same models"),
    "torn-writes": Part("lab.campaign.torn_writes", 200, "every call that writes fails once, or is the last one"),
    "hangs": Part("lab.campaign.hangs", 300, "whatever is silent, the fit ends or goes on in time", waits=True),
    "bad-inputs": Part("lab.campaign.bad_inputs", 114, "one line, the right exit code, outputs untouched"),
    "bit-flips": Part("lab.campaign.bit_flips", 3000, "no changed bit of the data is taken for data"),
    "drifts": Part("lab.campaign.drifts", 102, "files that differ are refused, or equal to what was cast by hand"),
    "fuzzed-fits": Part("lab.campaign.fuzzed_fits", 5000, "no certificate is false, no error is foreign"),
    "mutants": Part("lab.campaign.mutants", 20_000, "changed files never run, write or predict something else"),
    "attacks": Part("lab.campaign.attacks", 40, "model folders made to do harm do none"),
    "exposure": Part("lab.campaign.exposure", 1, "secrets in nothing that is written; nobody else is let in"),
    "sharing": Part("lab.campaign.sharing", 8, "jobs and threads on one cluster, and long fits: bits and memory"),
}
