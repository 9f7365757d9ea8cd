"""Is this machine fit for releasing ratings? Versions, threads, disk, and a self-test of what privacy rests on."""

from dpsr.doctor.check import Check, Status
from dpsr.doctor.examination import Examination, examine

__all__ = ["Check", "Examination", "Status", "examine"]
