"""Tests that scores are bit-identical on every processor and in every process."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[2]
SCRIPT = """
import hashlib, json, random
from cupel_measures.scoring.evaluator import evaluate
from cupel_measures.explaining.explanations import explain
from cupel_measures.catalogue.parser import parse_many
from support.data.small_collections import content_of, joined_of, qrels_of, ranking_of, scale, texts_of

rng = random.Random(7)
documents = [f"d{i}" for i in range(400)]
judged = {scale(3, name): {str(t): {d: rng.randrange(4) for d in rng.sample(documents, 200)}
          for t in range(8)} for name in ("relevance", "quality")}
subtopics = {str(t): {d: {f"s{rng.randrange(6)}": rng.randrange(3) for _ in range(3)}
             for d in rng.sample(documents, 200)} for t in range(8)}
qrels = qrels_of(judged, subtopics=subtopics)
run = {str(t): {d: rng.random() for d in rng.sample(documents, 300)} for t in range(8)}
measures = parse_many(
    "all_trec ERR@20 RBP(p=0.95) nDCG(dcg=exp-log2) CAM(of=nDCG) MM(of=RBP) TOMA(of=nDCG)"
    " gP@50 gR@50 F@50 gRBP gRBP(gains={2:2.3,3:3.7}) DCG DCG(base=10) DCG(base=3) SBTO@50"
    " RBTO@250 RBTO(gains={2:2.3,3:3.7})@250"
    " INST INSQ(T=2) BPM(T=3)@20 SDCG@20 NERR8@20 NERR9@20 NERR10 NERR11 Compat Compat(normalize=False)"
    " Accuracy Q Q(beta=10)@20"
    " alpha_nDCG(alpha=0.9)@20 alpha_DCG@20 ERR_IA(alpha=0.3)@20 nERR_IA NRBP(beta=0.8) nNRBP(alpha=0.3)"
    " AP_IA P_IA@10 StRecall@5"
    " LMD LMD(smoothing=0.3,divergence=kl) LMD(terms=30,stop=5,smoothing=0.1) soft_alpha_nDCG(alpha=0.3)@20"
    " WHAM(of=nDCG) NLRE NLRE(ties=reverse) NGRE NWCS SetG uRBP@50 uRBPgr@50 RBP_u(graded=True) H(of=nDCG)"
)
words = lambda: " ".join(f"w{int(rng.paretovariate(0.3)) % 900}" for _ in range(30))
texts = texts_of({d: words() for d in documents})
content = content_of(run, qrels, texts)
values = evaluate(qrels, joined_of(run, qrels), measures, content=content).values
print(hashlib.sha256(b"".join(values[m].tobytes() for m in measures)).hexdigest(), len(measures))
tied = ranking_of({topic: {d: score // 0.05 for d, score in scores.items()} for topic, scores in run.items()})
measures = parse_many("AP nDCG DCG RR F@9 ERR GMAP CAM(of=AP) MM(of=RBP) TOMA(of=nDCG) NLRE alpha_nDCG@20")
explanations = {str(measure): parts.as_data() for measure, parts in explain(qrels, tied, measures).items()}
print(hashlib.sha256(json.dumps(explanations).encode()).hexdigest())
"""


@cache
def fingerprint(**environment: str) -> str:
    """Return digests of many scores and explanations, computed in a separate process."""
    path = os.pathsep.join([str(TESTS), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_scores_do_not_depend_on_vector_instructions() -> None:
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    dispatched = np._core._multiarray_umath.__cpu_dispatch__  # type: ignore[attr-defined]
    available = [name for name in dispatched if features.get(name)]
    without = fingerprint(PYTHONHASHSEED="1", NPY_DISABLE_CPU_FEATURES=" ".join(available))
    assert without == fingerprint(PYTHONHASHSEED="1")


def test_scores_do_not_depend_on_the_hash_seed() -> None:
    assert fingerprint(PYTHONHASHSEED="1") == fingerprint(PYTHONHASHSEED="2")
