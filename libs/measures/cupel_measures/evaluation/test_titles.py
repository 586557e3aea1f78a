"""Names of significance tests and corrections in sentences."""

from cupel_measures.comparing.differences.comparison_choices import HSD, MAX_T
from cupel_measures.comparing.simultaneous.blocked_ranks import ALIGNED_RANKS, CONOVER, NEMENYI

CORRECTED = {"holm": "Holm's correction", "benjamini-hochberg": "Benjamini and Hochberg's correction"}
TITLES = {
    "randomisation": "randomisation test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "sign": "sign test",
    MAX_T: "step-down max-T test",
    HSD: "randomised Tukey HSD",
    NEMENYI: "Nemenyi's test of mean ranks",
    CONOVER: "Conover's test of mean ranks with Holm's correction",
    ALIGNED_RANKS: "Nemenyi's test of aligned ranks",
}
