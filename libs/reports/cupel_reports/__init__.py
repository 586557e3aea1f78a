"""Reports of audits as web pages: one file each, which asks nobody else for anything."""

from cupel_reports.pages import page as page
from cupel_reports.policies import policy as policy
