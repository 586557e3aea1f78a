"""Audits: how far a collection and its board can be trusted. Each kind is a file and declares itself."""

from cupel_measures.audits import aspects as aspects
from cupel_measures.audits import content as content
from cupel_measures.audits import correlation as correlation
from cupel_measures.audits import desiderata as desiderata
from cupel_measures.audits import discriminative_power as discriminative_power
from cupel_measures.audits import downsampling as downsampling
from cupel_measures.audits import incomplete as incomplete
from cupel_measures.audits import label_selection as label_selection
from cupel_measures.audits import leave_one_run_out as leave_one_run_out
from cupel_measures.audits import leave_one_team_out as leave_one_team_out
from cupel_measures.audits import pool_depth as pool_depth
from cupel_measures.audits import qrels_versions as qrels_versions
from cupel_measures.audits import scales as scales
from cupel_measures.audits import topics as topics
from cupel_measures.audits import unjudged as unjudged
from cupel_measures.audits import unlabelled_systems as unlabelled_systems
from cupel_measures.audits.declaring import KINDS as KINDS
from cupel_measures.audits.declaring import SETTINGS as SETTINGS
from cupel_measures.audits.declaring import Audit as Audit
from cupel_measures.audits.declaring import AuditError as AuditError
from cupel_measures.audits.declaring import from_text as from_text
from cupel_measures.audits.declaring import read as read
