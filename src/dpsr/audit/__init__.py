"""Empirical lower bounds on epsilon, to hold beside the certified upper bound. Curator's side: may read raw values."""

from dpsr.audit.auditing import audit_method, audit_pipeline, audit_planted, audit_release
from dpsr.audit.findings import AuditReport, Finding
from dpsr.audit.request import AuditRequest

__all__ = ["AuditReport", "AuditRequest", "Finding", "audit_method", "audit_pipeline", "audit_planted", "audit_release"]
