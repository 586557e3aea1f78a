"""The error messages for invalid measures, and for measures that a collection does not support."""

INVALID_MEASURES = {
    "nDCG@0": "nDCG: cutoff: expected a rank cutoff: a whole number from 1, got 0",
    "nDCG@-5": "nDCG: cutoff: expected a rank cutoff: a whole number from 1, got -5",
    "nDCG@1.5": "nDCG: cutoff: expected a rank cutoff: a whole number from 1, got 1.5",
    "nDCG@ten": "nDCG: cutoff: expected a rank cutoff: a whole number from 1, got ten",
    "nDCG@True": "nDCG: cutoff: expected a rank cutoff: a whole number from 1, got True",
    "nDCG@99999999999999999999": (
        "'nDCG@99999999999999999999', column 6: expected a whole number of at most 18 digits"
    ),
    "P": "P requires cutoff, for example P@10",
    "R(rel=2)": "R requires cutoff, for example R@10",
    "IPrec@1.5": "IPrec: recall: expected a number from 0 to 1, got 1.5",
    "IPrec@-0.1": "IPrec: recall: expected a number from 0 to 1, got -0.1",
    "RBP(p=0)": "RBP: p: expected a number between 0 and 1, both excluded, got 0",
    "RBP(p=1)": "RBP: p: expected a number between 0 and 1, both excluded, got 1",
    "RBP(p=-0.5)": "RBP: p: expected a number between 0 and 1, both excluded, got -0.5",
    "RBP(p=2)": "RBP: p: expected a number between 0 and 1, both excluded, got 2",
    "RBP(p=half)": "RBP: p: expected a number between 0 and 1, both excluded, got half",
    "RBP(p=1/0)": "'RBP(p=1/0)', column 9: expected a fraction of whole numbers, such as 1/3",
    "gRBP(p=1.0)@10": "gRBP: p: expected a number between 0 and 1, both excluded, got 1.0",
    "INST(T=0.2)": "INST: T: expected a number from 0.5, got 0.2",
    "INST(T=0)": "INST: T: expected a number from 0.5, got 0",
    "BPM(T=-1)@5": "BPM: T: expected a number above 0, got -1",
    "Rprec(multiple=0)": "Rprec: multiple: expected a number above 0, up to 1,000, got 0",
    "SetF(beta=-1)": "SetF: beta: expected a number from 0, got -1",
    "DCG(base=1)": "DCG: base: expected a base of logarithms above 1, got 1",
    "DCG(base=0.5)": "DCG: base: expected a base of logarithms above 1, got 0.5",
    "ERR(max_gain=0)": "ERR: max_gain: expected a number above 0, up to 1,000, or scale, got 0",
    "ERR(max_gain=high)": "ERR: max_gain: expected a number above 0, up to 1,000, or scale, got high",
    "SetF(beta=1e308)": "SetF: beta: expected a number of at most 1e+100, got 1e+308",
    "nDCG(gains={1:-1})": (
        "nDCG: gains: expected gains of at least 0 by label, such as {1:1,2:3}, got {1:-1}"
    ),
    "nDCG(gains=5)": "nDCG: gains: expected gains of at least 0 by label, such as {1:1,2:3}, got 5",
    "nDCG(gains=[1,2])": "nDCG: gains: expected gains of at least 0 by label, such as {1:1,2:3}, got [1,2]",
    "nDCG(gains={a:1})": "nDCG: gains: expected gains of at least 0 by label, such as {1:1,2:3}, got {a:1}",
    "nDCG(dcg=ln)": "nDCG: dcg: expected log2 or exp-log2, got ln",
    "alpha_nDCG(alpha=1.5)@10": "alpha_nDCG: alpha: expected a number from 0 to 1, got 1.5",
    "alpha_nDCG(alpha=-0.1)@10": "alpha_nDCG: alpha: expected a number from 0 to 1, got -0.1",
    "NLRE(ties=random)": "NLRE: ties: expected stable, min or reverse, got random",
    "AP11(levels=[0.5,0.1])": (
        "AP11: levels: expected increasing levels of recall from 0 to 1, such as [0.2,0.5,0.8], got [0.5,0.1]"
    ),
    "AP11(levels=[])": (
        "AP11: levels: expected increasing levels of recall from 0 to 1, such as [0.2,0.5,0.8], got []"
    ),
    "AP11(levels=[0.5,1.5])": (
        "AP11: levels: expected increasing levels of recall from 0 to 1, such as [0.2,0.5,0.8], got [0.5,1.5]"
    ),
    "CAM": "CAM requires of, for example CAM(of=nDCG@10)",
    "MM(of=Utility)": "MM: the harmonic mean needs values of at least 0, but Utility may be negative",
    "H(of={relevance:AP,quality:Utility})": (
        "H: the harmonic mean needs values of at least 0, but Utility may be negative"
    ),
    "CAM(of=nDCG@10)@10": "CAM: give the cutoff to the inner measure: CAM(of=nDCG@10)",
    "TOMA(of=nDCG)@10": "TOMA: give the cutoff to the inner measure: TOMA(of=nDCG@10)",
    "CAM(of=CAM(of=AP))": (
        "CAM: of: expected a measure of one aspect that is averaged over topics, such as "
        "nDCG@10, or one per aspect, such as {relevance:nDCG,credibility:SetF}, got "
        "CAM(of=AP)"
    ),
    "TOMA(of=TOMA(of=AP))": (
        "TOMA: of: expected a measure of one aspect that is averaged over topics, such as "
        "nDCG@10, got TOMA(of=AP)"
    ),
    "MM(of=NumRel)": (
        "MM: of: expected a measure of one aspect that is averaged over topics, such as "
        "nDCG@10, or one per aspect, such as {relevance:nDCG,credibility:SetF}, got NumRel"
    ),
    "CAM(of=GMAP)": (
        "CAM: of: expected a measure of one aspect that is averaged over topics, such as "
        "nDCG@10, or one per aspect, such as {relevance:nDCG,credibility:SetF}, got GMAP"
    ),
    "CAM(of=alpha_nDCG@10)": (
        "CAM: of: expected a measure of one aspect that is averaged over topics, such as "
        "nDCG@10, or one per aspect, such as {relevance:nDCG,credibility:SetF}, got "
        "alpha_nDCG@10"
    ),
    "TOMA(of=5)": (
        "TOMA: of: expected a measure of one aspect that is averaged over topics, such as nDCG@10, got 5"
    ),
    "TOMA(of={relevance:AP})": (
        "TOMA: of: expected a measure of one aspect that is averaged over topics, such as "
        "nDCG@10, got {relevance:AP}"
    ),
    "CAM(of=AP(aspect=relevance))": (
        "CAM: of: AP(aspect=relevance): omit the aspect, because the combining measure applies "
        "this measure to each aspect"
    ),
    "CAM(of=AP,weights={relevance:0.5,credibility:0.6})": (
        "CAM: weights: expected weights of at least 0 that sum to 1, such as "
        "{relevance:0.7,credibility:0.3}, got {relevance:0.5,credibility:0.6}"
    ),
    "CAM(of=AP,weights={relevance:-0.5,credibility:1.5})": (
        "CAM: weights: expected weights of at least 0 that sum to 1, such as "
        "{relevance:0.7,credibility:0.3}, got {relevance:-0.5,credibility:1.5}"
    ),
    "CAM(of=AP,weights={relevance:0,credibility:0})": (
        "CAM: weights: expected weights of at least 0 that sum to 1, such as "
        "{relevance:0.7,credibility:0.3}, got {relevance:0,credibility:0}"
    ),
    "CAM(of=AP,weights={})": (
        "CAM: weights: expected weights of at least 0 that sum to 1, such as "
        "{relevance:0.7,credibility:0.3}, got {}"
    ),
    "CAM(of=AP,weights=[0.5,0.5])": (
        "CAM: weights: expected weights of at least 0 that sum to 1, such as "
        "{relevance:0.7,credibility:0.3}, got [0.5,0.5]"
    ),
    "CAM(of=AP,weights={relevance:half,credibility:half})": (
        "CAM: weights: expected weights of at least 0 that sum to 1, such as "
        "{relevance:0.7,credibility:0.3}, got {relevance:half,credibility:half}"
    ),
    "NLRE(weights={relevance:0,credibility:0})": (
        "NLRE: weights: expected weights of 0 to 1,000, not all 0, such as "
        "{relevance:2,understandability:1}, got {relevance:0,credibility:0}"
    ),
    "NLRE(weights={relevance:-1,credibility:2})": (
        "NLRE: weights: expected weights of 0 to 1,000, not all 0, such as "
        "{relevance:2,understandability:1}, got {relevance:-1,credibility:2}"
    ),
    "H(weights={relevance:0,credibility:0})": (
        "H: weights: expected weights of 0 to 1,000, not all 0, such as "
        "{relevance:2,understandability:1}, got {relevance:0,credibility:0}"
    ),
    "CAM(of=AP,aspects=[])": (
        "CAM: aspects: expected a list of different aspects, such as [relevance,credibility], got []"
    ),
    "CAM(of=AP,aspects=relevance)": (
        "CAM: aspects: expected a list of different aspects, such as [relevance,credibility], got relevance"
    ),
    "CAM(of=AP,aspects=[relevance,relevance])": (
        "CAM: aspects: expected a list of different aspects, such as [relevance,credibility], "
        "got [relevance,relevance]"
    ),
    "TOMA(of=AP,distance=cosine)": "TOMA: distance: expected euclidean, manhattan or chebyshev, got cosine",
    "TOMA(of=AP,distance=euclidian)": (
        "TOMA: distance: expected euclidean, manhattan or chebyshev, got euclidian; did you mean euclidean?"
    ),
    "TOMA(of=AP,weighting=linear)": (
        "TOMA: weighting: expected step1, top_half, positive, or a non-increasing list of "
        "integer weights, best class first, got linear"
    ),
    "TOMA(of=AP,weighting=[0,1])": (
        "TOMA: weighting: expected step1, top_half, positive, or a non-increasing list of "
        "integer weights, best class first, got [0,1]"
    ),
    "TOMA(of=AP,weighting=[-1,-2])": (
        "TOMA: weighting: expected step1, top_half, positive, or a non-increasing list of "
        "integer weights, best class first, got [-1,-2]"
    ),
    "TOMA(of=AP,weighting=[1.5,1])": (
        "TOMA: weighting: expected step1, top_half, positive, or a non-increasing list of "
        "integer weights, best class first, got [1.5,1]"
    ),
    "TOMA(of=AP,weighting=[])": (
        "TOMA: weighting: expected step1, top_half, positive, or a non-increasing list of "
        "integer weights, best class first, got []"
    ),
    "TOMA(of=AP,embedding={relevance:[1,0]})": (
        "TOMA: embedding: expected a non-decreasing embedding by aspect, "
        "such as {correctness:[0,1.5,3]}, got {relevance:[1,0]}"
    ),
    "TOMA(of=AP,embedding=[0,1])": (
        "TOMA: embedding: expected a non-decreasing embedding by aspect, "
        "such as {correctness:[0,1.5,3]}, got [0,1]"
    ),
    "nope@10": "unknown measure 'nope'; `cupel measures` lists all measures",
    "ndgc@10": "unknown measure 'ndgc'; did you mean nDCG?",
    "NDGC": "unknown measure 'NDGC'; did you mean nDCG?",
    "rbp@10": "unknown measure 'rbp'; did you mean RBP?",
    "AP(rl=2)": "AP has no parameter 'rl'; did you mean rel?",
    "AP(rel=high)": "AP: rel: expected a relevance level: a whole number, got high",
    "AP(rel=1,rel=2)": "'AP(rel=1,rel=2)', column 14: rel is given twice",
    "AP(cutoff=5)@5": "AP: cutoff is given twice, in parentheses and after @",
    "AP(judged_only=yes)": "AP: judged_only: expected True or False, got yes",
    "AP(aspect=5)": "AP: aspect: expected the name of an aspect, got 5",
    "nDCG@10 AP": "'nDCG@10 AP', column 9: expected '(', '@' or the end, found 'AP'",
    "nDCG@10,AP": "'nDCG@10,AP', column 8: expected '(', '@' or the end, found ','",
    "": "'', column 1: expected the name of a measure, found the end",
    "nDCG(10)": "'nDCG(10)', column 6: expected the name of a parameter, found '10'",
    "nDCG @ 10 20": "'nDCG @ 10 20', column 11: expected '(', '@' or the end, found '20'",
    "AP(": "'AP(', column 4: expected the name of a parameter, found the end",
    "AP)": "'AP)', column 3: expected '(', '@' or the end, found ')'",
    "AP@": "'AP@', column 4: expected a value, found the end",
    "AP(rel=)": "'AP(rel=)', column 8: expected a value, found ')'",
    "AP(=2)": "'AP(=2)', column 4: expected the name of a parameter, found '='",
    "'AP'": "\"'AP'\", column 1: expected the name of a measure, found \"'AP'\"",
    "AP;DROP TABLE": "'AP;DROP TABLE', column 3: unexpected ';'",
    "AP(aspect='x": (
        '"AP(aspect=\'x", column 11: unexpected "\'": a string ends with the same quote on the same line'
    ),
    "АР": ("unknown measure 'АР' ('\\u0410\\u0420'); `cupel measures` lists all measures"),
    "nDCG＠10": "'nDCG＠10', column 5: unexpected '＠'",
    "nDCG@１０": "'nDCG@１０', column 6: unexpected '１'",
    "😀@10": "'😀@10', column 1: unexpected '😀'",
    "uRBP(understandability=[])": (
        "uRBP: understandability: expected an aspect, or a list of different aspects, got []"
    ),
    "uRBP(thresholds={credibility:low})": (
        "uRBP: thresholds: expected the worst label that counts as understandable, by aspect, such "
        "as {understandability:40}, got {credibility:low}"
    ),
    "uRBPgr(gains={credibility:{1:1.5}})": (
        "uRBPgr: gains: expected numbers from 0 to 1 by aspect and label, such as "
        "{understandability:{1:0.4,2:0.8,3:1}}, got {credibility:{1:1.5}}"
    ),
    "uRBPgr(gains={credibility:0.5})": (
        "uRBPgr: gains: expected numbers from 0 to 1 by aspect and label, such as "
        "{understandability:{1:0.4,2:0.8,3:1}}, got {credibility:0.5}"
    ),
    "utility_1,-1": "trec_eval's utility takes four values, for example utility_1,-1,0,0",
    "prefs_simp": (
        "trec_eval's prefs_simp is computed from preferences between documents, not from labels; use Bpref"
    ),
    "ndcg_p": (
        "trec_eval's ndcg_p was renamed: ndcg takes gains, for example ndcg_1=3,2=9 or nDCG(gains={1:3,2:9})"
    ),
}
"""Text of a measure -> the complete message."""

UNSUPPORTED_MEASURES = {
    (
        "flat",
        "TOMA(of=AP)",
    ): (
        "TOMA(of=AP): all label tuples are at the same distance from the best one, so they form a"
        " single class; at least two classes are needed"
    ),
    ("flat", "TOMA(of=nDCG,distance=chebyshev)"): (
        "TOMA(of=nDCG,distance=chebyshev): all label tuples are at the same distance from the "
        "best one, so they form a single class; at least two classes are needed"
    ),
    ("two", "nDCG(aspect=qualty)@10"): (
        "nDCG(aspect=qualty)@10: the collection has no aspect 'qualty'; it has relevance, credibility"
    ),
    ("two", "CAM(of=AP,aspects=[relevance,stance])"): (
        "CAM(of=AP,aspects=[relevance,stance]): the collection has no aspect 'stance'; it has "
        "relevance, credibility"
    ),
    ("two", "CAM(of=AP,weights={stance:1})"): (
        "CAM(of=AP,weights={stance:1}): the collection has no aspect 'stance'; it has relevance, credibility"
    ),
    ("two", "CAM(of=AP,aspects=[relevance],weights={credibility:1})"): (
        "CAM(of=AP,aspects=[relevance],weights={credibility:1}): `weights` lists "
        "[credibility], but the aspects are [relevance]; name a weight for each aspect"
    ),
    ("two", "CAM(of={relevance:AP},aspects=[relevance,credibility])"): (
        "CAM(of={relevance:AP},aspects=[relevance,credibility]): `of` lists [relevance], "
        "but the aspects are [relevance,credibility]; name a measure for each aspect"
    ),
    ("two", "WHAM(of={relevance:AP,stance:AP})"): (
        "WHAM(of={relevance:AP,stance:AP}): the collection has no aspect 'stance'; it has "
        "relevance, credibility"
    ),
    ("two", "TOMA(of=AP,label_set=impossible)"): (
        "TOMA(of=AP,label_set=impossible): unknown label set 'impossible'; use one of "
        "cartesian, observed, possible"
    ),
    ("two", "TOMA(of=AP,label_set=possible,aspects=[relevance])"): (
        "TOMA(of=AP,label_set=possible,aspects=[relevance]): the label set is for aspects "
        "['relevance', 'credibility'], not for ['relevance']"
    ),
    (
        "two",
        "TOMA(of=AP,weighting=[1,0])",
    ): "TOMA(of=AP,weighting=[1,0]): the weighting has 2 weights for 9 classes",
    ("two", "TOMA(of=AP,embedding={relevance:[0,1]})"): (
        "TOMA(of=AP,embedding={relevance:[0,1]}): the embedding of aspect 'relevance' has 2 "
        "numbers, but the aspect has 4 labels"
    ),
    ("two", "TOMA(of=AP,embedding={stance:[0,1]})"): (
        "TOMA(of=AP,embedding={stance:[0,1]}): the collection has no aspect 'stance'; it has "
        "relevance, credibility"
    ),
    ("two", "TOMA(of=AP,aspects=[credibility],embedding={relevance:[0,1,2,3]})"): (
        "TOMA(of=AP,embedding={relevance:[0,1,2,3]},aspects=[credibility]): `embedding` lists "
        "'relevance', which is not one of the aspects"
    ),
    ("two", "TOMA(of=AP,label_set=observed)"): (
        "TOMA(of=AP,label_set=observed): all label tuples are at the same distance from the best "
        "one, so they form a single class; at least two classes are needed"
    ),
    ("two", "alpha_nDCG@10"): (
        "alpha_nDCG@10: it needs judgments by subtopic, and this collection has none; add a qrels"
        " file with layout: subtopics"
    ),
    ("two", "StRecall@5"): (
        "StRecall@5: it needs judgments by subtopic, and this collection has none; add a qrels "
        "file with layout: subtopics"
    ),
    ("sub", "Compat"): (
        "Compat: it needs judgments of an aspect, and this collection has only judgments by "
        "subtopic; use a measure for judgments by subtopic, such as alpha_nDCG@20"
    ),
    ("sub", "nDCG@10"): (
        "nDCG@10: it needs judgments of an aspect, and this collection has only judgments by "
        "subtopic; use a measure for judgments by subtopic, such as alpha_nDCG@20"
    ),
    ("sub", "TOMA(of=AP)"): (
        "TOMA(of=AP): it needs judgments of an aspect, and this collection has only judgments by "
        "subtopic; use a measure for judgments by subtopic, such as alpha_nDCG@20"
    ),
    ("sub", "gP@5"): (
        "gP@5: it needs judgments of an aspect, and this collection has only judgments by "
        "subtopic; use a measure for judgments by subtopic, such as alpha_nDCG@20"
    ),
    ("sub", "alpha_DCG"): (
        "alpha_DCG: a normalised value needs a cutoff of at most 1,000,000, such as @20; with "
        "normalise=False, the cutoff may be greater or omitted"
    ),
    ("sub", "ERR_IA"): (
        "ERR_IA: a normalised value needs a cutoff of at most 1,000,000, such as @20; with "
        "normalise=False, the cutoff may be greater or omitted"
    ),
    ("sub", "alpha_DCG@2000000"): (
        "alpha_DCG@2000000: a normalised value needs a cutoff of at most 1,000,000, such as @20; "
        "with normalise=False, the cutoff may be greater or omitted"
    ),
    ("two", "gRBP(gains={1:3})@10"): (
        "gRBP(gains={1:3})@10: label 2 has a smaller gain than label 1; gains must not decrease "
        "along the scale of aspect 'relevance'"
    ),
    ("two", "RBTO(gains={1:9})@5"): (
        "RBTO(gains={1:9})@5: label 2 has a smaller gain than label 1; gains must not decrease "
        "along the scale of aspect 'relevance'"
    ),
    ("two", "RBTO@100000"): (
        "RBTO@100000: values reach about 4^100000, but floats are limited to 10^300; "
        "use a smaller cutoff, or exact_values of the library"
    ),
    ("one", "NLRE"): "NLRE: it needs two aspects or more, but combines 1",
    ("one", "NGRE"): "NGRE: it needs two aspects or more, but combines 1",
    ("one", "NWCS"): "NWCS: it needs two aspects or more, but combines 1",
    ("one", "uRBP"): "uRBP: the collection has no aspect of understandability, only 'relevance'",
    ("one", "uRBPgr"): "uRBPgr: the collection has no aspect of understandability, only 'relevance'",
    ("one", "RBP_u"): "RBP_u: the collection has no aspect of understandability, only 'relevance'",
    (
        "two",
        "NLRE(weights={relevance:1})",
    ): "NLRE(weights={relevance:1}): it needs two aspects or more, but combines 1",
    ("two", "uRBP(understandability=relevance)"): (
        "uRBP(understandability=[relevance]): 'relevance' is the topical aspect; "
        "name another one for understandability"
    ),
    ("two", "uRBP(understandability=credibility,thresholds={relevance:1})"): (
        "uRBP(understandability=[credibility],thresholds={relevance:1}): 'relevance' is not "
        "one of the understandability aspects of the measure"
    ),
    ("two", "H(of=nDCG@5,graded=[credibility])"): (
        "H(of=nDCG@5,graded=[credibility]): graded requires of=RBP, got nDCG@5"
    ),
    ("two", "RBP_u(graded=True,strict=True)"): (
        "RBP_u(strict=True,graded=True): thresholds and strict apply to binary "
        "understandability; omit them, or omit graded=True"
    ),
    (
        "two",
        "RBP_u(gains={credibility:{1:1}})",
    ): "RBP_u(gains={credibility:{1:1}}): gains requires graded=True",
    ("two", "INST(max_rel=0)"): "INST(max_rel=0): min_rel=0 is not below max_rel=0",
    ("two", "INST(min_rel=3)"): "INST(min_rel=3): min_rel=3 is not below 3, the greatest gain of the scale",
    ("two", "BPM(min_rel=2,max_rel=1)@5"): "BPM(min_rel=2,max_rel=1)@5: min_rel=2 is not below max_rel=1",
    ("two", "nDCG(dcg=exp-log2,gains={1:9999})"): (
        "nDCG(dcg=exp-log2,gains={1:9999}): 2^gain is too large for a gain of 9999; the limit is 300"
    ),
    ("two", "Utility(d=1)"): (
        "Utility(d=1): the parameter d needs documents=..., the number of documents in the collection"
    ),
    ("two", "nDCG(aspect='')"): "nDCG: aspect: expected the name of an aspect, got ''",
    ("two", "nDCG(aspect='a b')@10"): (
        "nDCG(aspect='a b')@10: the collection has no aspect 'a b'; it has relevance, credibility"
    ),
    ("sub", "NLRE"): (
        "NLRE: it needs judgments of an aspect, and this collection has only judgments by "
        "subtopic; use a measure for judgments by subtopic, such as alpha_nDCG@20"
    ),
    ("long", "ERR@10"): (
        "ERR@10: max_gain=4 is below 2000, the highest gain of aspect 'a'; use max_gain=scale "
        "to take the highest gain"
    ),
    ("long", "nDCG(dcg=exp-log2)"): (
        "nDCG(dcg=exp-log2): 2^gain is too large for a gain of 2000; the limit is 300"
    ),
    ("long", "TOMA(of=RBTO@2)"): (
        "TOMA(of=RBTO@2): these scales have too many label tuples to compute all distances; use "
        "label_set=observed, which contains only the tuples of judged documents"
    ),
    ("long", "TOMA(of=nDCG,weighting=[2,1,0])"): (
        "TOMA(of=nDCG,weighting=[2,1,0]): these scales have too many label tuples to compute all "
        "distances; use label_set=observed, which contains only the tuples of judged documents"
    ),
}
"""(name of a collection in the tests, measure) -> the complete message."""
