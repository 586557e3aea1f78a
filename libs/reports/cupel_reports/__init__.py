"""Reports of audits as web pages: one file each, which asks nobody else for anything."""

from cupel_reports.content_security import policy as policy
from cupel_reports.report_page import page as page
