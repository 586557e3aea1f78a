"""Audits: how far a collection and its board can be trusted. Each kind is a file and declares itself."""

from cupel_measures.audits import downsampling as downsampling
from cupel_measures.audits.declaring import KINDS as KINDS
from cupel_measures.audits.declaring import SETTINGS as SETTINGS
from cupel_measures.audits.declaring import Audit as Audit
from cupel_measures.audits.declaring import AuditError as AuditError
from cupel_measures.audits.declaring import from_text as from_text
from cupel_measures.audits.declaring import read as read
