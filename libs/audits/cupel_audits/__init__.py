"""Audits: tests of how far a collection and its leaderboard can be trusted."""

from cupel_audits.declarations import KINDS as KINDS
from cupel_audits.declarations import Audit as Audit
from cupel_audits.declarations import AuditError as AuditError
from cupel_audits.declarations import parse_audit as parse_audit
from cupel_audits.declarations import read_audit as read_audit
