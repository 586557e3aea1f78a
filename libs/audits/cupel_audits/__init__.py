"""Audits: how far a collection and its board can be trusted. Each kind is a file and declares itself."""

from cupel_audits.declarations import KINDS as KINDS
from cupel_audits.declarations import SETTINGS as SETTINGS
from cupel_audits.declarations import Audit as Audit
from cupel_audits.declarations import AuditError as AuditError
from cupel_audits.declarations import from_text as from_text
from cupel_audits.declarations import read as read
from cupel_audits.kinds import content as content
from cupel_audits.kinds import correlation as correlation
from cupel_audits.kinds import discriminative_power as discriminative_power
from cupel_audits.kinds import downsampling as downsampling
from cupel_audits.kinds import incomplete as incomplete
from cupel_audits.kinds import leave_one_run_out as leave_one_run_out
from cupel_audits.kinds import leave_one_team_out as leave_one_team_out
from cupel_audits.kinds import pool_depth as pool_depth
from cupel_audits.kinds import scales as scales
from cupel_audits.kinds import unlabelled_systems as unlabelled_systems
from cupel_audits.kinds.aspects import aspects_kind as aspects_kind
from cupel_audits.kinds.desiderata import desiderata_kind as desiderata_kind
from cupel_audits.kinds.label_selection import label_selection_kind as label_selection_kind
from cupel_audits.kinds.qrels_versions import qrels_versions_kind as qrels_versions_kind
from cupel_audits.kinds.topics import topics_kind as topics_kind
from cupel_audits.kinds.unjudged import unjudged_kind as unjudged_kind
