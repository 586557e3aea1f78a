"""Reports of audits, scores and comparisons as self-contained web pages.

The pages load nothing from the network.
"""

from cupel_reports.content_security import policy as policy
from cupel_reports.report_page import missing_packages as missing_packages
from cupel_reports.report_page import page as page
