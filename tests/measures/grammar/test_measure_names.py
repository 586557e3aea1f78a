"""Tests of parsing measures: canonical texts, rejected texts, names of trec_eval, and binding to aspects."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import parse, parse_many
from cupel_measures.grammar import trec_names
from cupel_measures.grammar.parameters import nearest
from cupel_measures.grammar.registry import NAMES
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.grammar.trec_names import trec_name
from cupel_measures.model import Aspect

CANONICAL = {
    "AP": "AP",
    "MAP": "AP",
    "MRR@10": "RR@10",
    "NDCG@10": "nDCG@10",
    "Precision@5": "P@5",
    "AP( rel = 2 )@20": "AP(rel=2)@20",
    "AP(cutoff=20,rel=1)": "AP(rel=1)@20",
    "nDCG(judged_only=True)": "nDCG(judged_only=True)",
    "nDCG(judged_only=False)": "nDCG",
    "nDCG(dcg='exp-log2')@10": "nDCG(dcg=exp-log2)@10",
    "nDCG(gains={2:3,0:0,1:1})@10": "nDCG(gains={0:0,1:1,2:3})@10",
    "RBP(rel=2,p=0.90)": "RBP(p=0.9,rel=2)",
    "RBP(p=4/5)": "RBP",
    "RBP(p=1/3)": "RBP(p=1/3)",
    "RBP(p=2/6)": "RBP(p=1/3)",
    "RBP(p=5e-1)@10": "RBP(p=0.5)@10",
    "nDCG(gains={})@10": "nDCG@10",
    "AP@ 10": "AP@10",
    "AP(rel=0)": "AP(rel=0)",
    "AP(rel=-1)": "AP(rel=-1)",
    "AP(aspect='a-')": "AP(aspect='a-')",
    "AP(aspect=a-b.c)": "AP(aspect=a-b.c)",
    "AP(aspect='-a')": "AP(aspect='-a')",
    "AP(aspect='.')": "AP(aspect='.')",
    "AP(aspect='True')": "AP(aspect='True')",
    "AP(aspect='it\\'s')": "AP(aspect='it\\'s')",
    'AP(aspect="back\\\\slash")': "AP(aspect='back\\\\slash')",
    "AP(aspect='हिन्दी')": "AP(aspect='हिन्दी')",
    "CAM(of='nDCG@10')": "CAM(of=nDCG@10)",
    "SetF(beta=0.0)": "SetF(beta=0)",
    "SetF(beta=2)": "SetF(beta=2)",
    "SetF(beta=2.0)": "SetF(beta=2)",
    "SetF(beta=1.0)": "SetF",
    "SetRelP": "SetP(relative=True)",
    "SetRelP(rel=2)": "SetP(rel=2,relative=True)",
    "IPrec@0.10": "IPrec@0.1",
    "IPrec(recall=0)": "IPrec@0",
    "ERR(max_gain=4)@20": "ERR@20",
    "ERR(max_gain=scale)@20": "ERR(max_gain=scale)@20",
    "nDCG(aspect=credibility)@10": "nDCG(aspect=credibility)@10",
    "nDCG(aspect='how credible')@10": "nDCG(aspect='how credible')@10",
    "CAM(of=NDCG@5,weights={b:.7,a:0.3})": "CAM(of=nDCG@5,weights={a:0.3,b:0.7})",
    "MM( of = AP(rel=2)@5 )": "MM(of=AP(rel=2)@5)",
    "TOMA(of=nDCG@10,distance=euclidean)": "TOMA(of=nDCG@10)",
    "TOMA(weighting=[3,1,0],of=AP,embedding={c:[0,1.5,3]})": (
        "TOMA(of=AP,weighting=[3,1,0],embedding={c:[0,1.5,3]})"
    ),
    "gRBP(p=1/3)": "gRBP",
    "gRBP(gains={2:3},p=.2)@250": "gRBP(p=0.2,gains={2:3})@250",
    "gR(normalised=False)@10": "gR@10",
    "DCG(base=10.0)@10": "DCG(base=10)@10",
    # trec_eval's names
    "map": "AP",
    "dcg": "DCG",
    "map_cut_10": "AP@10",
    "ndcg": "nDCG",
    "ndcg_cut.10": "nDCG@10",
    "P_10": "P@10",
    "recall_100": "R@100",
    "iprec_at_recall_0.20": "IPrec@0.2",
    "11pt_avg": "AP11",
    "set_F_0.5": "SetF(beta=0.5)",
    "Rprec_mult_1.20": "Rprec(multiple=1.2)",
    "TOMA(of=ndcg_cut_10)": "TOMA(of=nDCG@10)",
    "infAP": "infAP",
    "gm_bpref": "GMBpref",
    "relative_P_5": "RelP@5",
    "utility": "Utility",
    "utility_2,-1,0,0": "Utility(a=2)",
    "11pt_avg_.25,.5,.75": "AP11(levels=[0.25,0.5,0.75])",
    "ndcg_1=3,2=9,4=4.5": "nDCG(gains={1:3,2:9,4:4.5})",
    "rbp": "RBP_trec",
    "rbp_p=0.8": "RBP_trec(p=0.8)",
    "rbp_resid": "RBPResidual",
    # ir_measures' C/W/L measures and the like
    "INST(max_rel=3,T=1.0)": "INST(max_rel=3)",
    "INST(min_rel=1,max_rel=3,T=2.5)": "INST(T=2.5,min_rel=1,max_rel=3)",
    "BPM(T=3.0,max_rel=2)@10": "BPM(T=3,max_rel=2)@10",
    "SDCG(dcg='log2',max_rel=2)@10": "SDCG(max_rel=2)@10",
    "NERR10(p=0.9,max_rel=2)": "NERR10(max_rel=2)",
    "Compat(p=0.95,normalize=True)": "Compat",
    "Compat(normalize=False,p=0.8)": "Compat(p=0.8,normalize=False)",
    "Accuracy(rel=2)@10": "Accuracy(rel=2)@10",
    "Q-measure@10": "Q@10",
    # any case, and names of trec_eval with @
    "map@10": "AP@10",
    "Map(rel=2)@10": "AP(rel=2)@10",
    "ndcg@10": "nDCG@10",
    "NdCg(dcg=exp-log2)@10": "nDCG(dcg=exp-log2)@10",
    "mrr@10": "RR@10",
    "p@5": "P@5",
    "precision@5": "P@5",
    "recall@100": "R@100",
    "RECALL@100": "R@100",
    "recip_rank@10": "RR@10",
    "ndcg_cut@10": "nDCG@10",
    "CAM(of=ndcg@10)": "CAM(of=nDCG@10)",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_measure_has_a_canonical_text(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)
    assert hash(parse(canonical)) == hash(parse(text))


REJECTED = {
    "TOMA(of=nDCG)@10": "give the cutoff to the inner measure: TOMA(of=nDCG@10)",
    "TOMA(of=nDCG@5)@10": "give the cutoff to the inner measure: TOMA(of=nDCG@10)",
    "CAM(of=AP(rel=2),aspects=[a,b])@5": "inner measure: CAM(of=AP(rel=2)@5,aspects=[a,b])",
    "P": "P requires cutoff, for example P@10",
    "IPrec": "IPrec requires recall, for example IPrec@0.1",
    "CAM": "CAM requires of, for example CAM(of=nDCG@10)",
    "rbp@10": "did you mean RBP?",  # trec_eval's rbp is RBP_trec
    "ndgc@10": "did you mean nDCG?",
    "ndcg@10,20": "found ','",
    "nDGC@10": "did you mean nDCG?",
    "AP(rl=2)": "AP has no parameter 'rl'; did you mean rel?",
    "AP(zzz=2)": "it takes cutoff, rel, judged_only, aspect",
    "AP@10.0": "a whole number from 1, got 10.0",
    "AP@1e2": "got 100.0",
    "AP@" + "1" * 30: "a whole number of at most 18 digits",
    "AP@\u0661\u0660": "unexpected",
    "RBP(p=1/" + "9" * 5000 + ")": "expected a measure of at most 4,000 characters",
    "RBP(p=999999999999999999/1000000000000000000)": "at most 18 digits",
    "RBP(p=99999999999999999/100000000000000000)": "between 0 and 1, both excluded",
    "RBP(p=1e400)": "the number is out of range",
    "TOMA(of=AP,embedding={a:[0,1e400]})": "the number is out of range",
    "TOMA(of=AP,distance=euclidian)": "did you mean euclidean?",
    "MM(of=Bpref)@5": "MM takes no value after @, and neither does Bpref",
    "CAM(of=AP(aspect='a b'))@5": "inner measure: CAM(of=AP(aspect='a b')@5)",
    "AP(aspect='a\nb')": 'unexpected "\'"',
    "AP(aspect='\\x')": 'unexpected "\'"',
    "AP(aspect='\ud800')": 'unexpected "\'"',
    "Rprec(multiple=1e300)": "a number above 0, up to 1,000",
    "nDCG(gains={1:1e300})": "gains of at least 0 by label",
    "AP(rel=1.5)": "got 1.5",
    "AP(rel=True)": "got True",
    "AP(rel=1,rel=2)": "rel is given twice",
    "AP(cutoff=5)@5": "cutoff is given twice",
    "gP": "gP requires cutoff, for example gP@10",
    "gRBP(p=1)": "a number between 0 and 1, both excluded, got 1",
    "DCG(base=1)": "a base of logarithms above 1, got 1",
    "RBP(p=1)": "a number between 0 and 1, both excluded, got 1",
    "RBP(p=1/0)": "a fraction of whole numbers, such as 1/3",
    "AP+P": "column 3: unexpected '+'",
    "nDCG@[5,10]": "a whole number from 1, got [5,10]",
    "nDCG@0": "a whole number from 1, got 0",
    "nDCG@-5": "got -5",
    "P(5)": "expected the name of a parameter, found '5'",
    "AP@": "expected a value, found the end",
    "AP(": "found the end",
    "AP)": "found ')'",
    "nDCG(dcg=ln)@10": "expected log2 or exp-log2, got ln",
    "nDCG(gains={1:-1})@10": "gains of at least 0 by label",
    "SetR@3": "SetR takes no value after @",
    "CAM(of=CAM(of=AP))": "expected a measure of one aspect that is averaged over topics",
    "CAM(of=GMAP)": "expected a measure of one aspect that is averaged over topics",
    "CAM(of=NumRel)": "expected a measure of one aspect that is averaged over topics",
    "CAM(of=AP(aspect=a))": "omit the aspect",
    "CAM(of=5)": "expected a measure of one aspect",
    "CAM(of=P)": "P requires cutoff",
    "CAM(of=AP,weights={a:.5,b:.6})": "weights of at least 0 that sum to 1",
    "CAM(of=AP,weights={a:1.5,b:-0.5})": "weights of at least 0 that sum to 1",
    "CAM(of=AP,aspects=[a,a])": "a list of different aspects",
    "TOMA(of=AP,distance=cosine)": "expected euclidean, manhattan or chebyshev, got cosine",
    "TOMA(of=AP,weighting=[1,2])": "a non-increasing list of integer weights",
    "TOMA(of=AP,embedding={a:[1,0]})": "a non-decreasing embedding",
    "__import__('os')": "expected the name of a parameter",
    "CAM(of=" * 40 + "AP" + ")" * 40: "nested",
    "AP(aspect='unclosed)": 'unexpected "\'"',
    "INST(T=0.4)": "a number from 0.5, got 0.4",
    "BPM(max_rel=2)": "BPM requires cutoff, for example BPM@10",
    "SDCG(dcg=exp-log2)@5": "expected log2, got exp-log2",
    "NERR11(T=0)": "a number above 0, got 0",
    "AP11(levels=[0.5,0.2])": "levels of recall from 0 to 1",
    "utility_1,-1": "trec_eval's utility takes four values, for example utility_1,-1,0,0",
    "ndcg_-1=2": "an unjudged document always has gain 0",
    "rbp.0.8": "rbp takes p, for example rbp_p=0.8",
    "relstring.20": "trec_eval's relstring.20 is a string, not a number",
    "TOMA(of=G)": "trec_eval's G is experimental",
    "G.1=3": "use nDCG",
    "P_avgjg_10": "several groups of judgments",
    "prefs_simp_ret": "preferences between documents",
}


@pytest.mark.parametrize(("text", "message"), REJECTED.items())
def test_invalid_measure_is_rejected_with_a_message(text: str, message: str) -> None:
    with pytest.raises(MeasureError) as problem:
        parse(text)
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_measure_list_splits_at_spaces_outside_brackets_and_quotes() -> None:
    measures = parse_many("nDCG@10 AP( rel = 2 )\n CAM(of=AP, weights={'a b': 0.5, c: 0.5})  nDCG@10")
    assert [str(measure) for measure in measures] == [
        "nDCG@10",
        "AP(rel=2)",
        "CAM(of=AP,weights={'a b':0.5,c:0.5})",
    ]


@pytest.mark.parametrize(
    ("text", "measures"),
    [
        ("nDCG@10, AP", "nDCG@10 AP"),
        ("ndcg@10,map@10,P@5,", "nDCG@10 AP@10 P@5"),
        ("P.5,10,AP", "P@5 P@10 AP"),
        ("ndcg_1=3,2=9,AP", "nDCG(gains={1:3,2:9}) AP"),
        ("utility_2,-1,0,0, 11pt_avg", "Utility(a=2) AP11"),
        ("AP,11pt_avg", "AP AP11"),
        ("CAM(of=AP,aspects=[a,b]),AP(aspect='a,b')", "CAM(of=AP,aspects=[a,b]) AP(aspect='a,b')"),
    ],
)
def test_measure_list_splits_at_commas_outside_brackets_and_quotes(text: str, measures: str) -> None:
    assert [str(measure) for measure in parse_many(text)] == measures.split()


@pytest.mark.parametrize(("text", "message"), [("P_5, 10", "found '10'"), (" , ", "names no measure")])
def test_measure_list_with_an_item_that_is_no_measure_is_rejected(text: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        parse_many(text)


def test_trec_eval_set_names_give_several_measures() -> None:
    official = [str(measure) for measure in parse_many("official")]
    assert official[:9] == ["NumQ", "NumRet", "NumRel", "NumRelRet", "AP", "GMAP", "Rprec", "Bpref", "RR"]
    assert official[9:11] == ["IPrec@0", "IPrec@0.1"]
    assert official[-1] == "P@1000"
    assert [str(measure) for measure in parse_many("ndcg_cut.10,20")] == ["nDCG@10", "nDCG@20"]


TREC_EVAL = (
    "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P_5 relstring "
    "recall infAP gm_bpref Rprec_mult utility 11pt_avg binG G ideal_dcg ndcg ndcg_rel Rndcg ndcg_cut map_cut "
    "relative_P success set_P set_relative_P set_recall set_map set_F num_nonrel_judged_ret "
    "prefs_num_prefs_poss prefs_num_prefs_ful prefs_num_prefs_ful_ret prefs_simp prefs_pair prefs_avgjg "
    "prefs_avgjg_Rnonrel prefs_simp_ret prefs_pair_ret prefs_avgjg_ret prefs_avgjg_Rnonrel_ret "
    "prefs_simp_imp prefs_pair_imp prefs_avgjg_imp map_avgjg P_avgjg Rprec_mult_avgjg yaap rbp rbp_resid unj "
    "official all_trec set prefs all_prefs qrels_jg"
)


@pytest.mark.parametrize("name", TREC_EVAL.split())
def test_every_trec_eval_name_works_or_has_a_reason(name: str) -> None:
    reason = trec_names.refusal(name)
    if reason is None:
        assert parse_many(name)
        return
    with pytest.raises(MeasureError) as problem:
        parse_many(name)
    assert str(problem.value) == reason


def test_refused_trec_eval_names_are_not_measures() -> None:
    assert not set(trec_names.REFUSED) & set(NAMES)


def test_trec_eval_names_round_trip() -> None:
    names = (
        "num_q map ndcg_cut_10 P_5 iprec_at_recall_0.10 11pt_avg Rprec Rprec_mult_0.20 set_relative_P set_F "
        "infAP gm_bpref utility relative_P_10 rbp rbp_resid"
    )
    assert [trec_name(str(parse(name))) for name in names.split()] == names.split()
    assert trec_name("TOMA(of=AP)") == "TOMA(of=AP)"


class TestBinding:
    """Binding a measure to the aspects of a collection."""

    aspects = tuple(Aspect(name=name, labels=range(3)) for name in ("relevance", "quality"))

    def test_bound_measure_lists_its_aspects(self) -> None:
        bound = parse("TOMA(of=nDCG@5)").bound(self.aspects)
        assert str(bound) == "TOMA(of=nDCG@5,aspects=[relevance,quality])"
        assert bound.bound((*self.aspects, Aspect(name="more", labels=range(2)))) == bound

    def test_bound_aspects_have_the_order_of_the_collection(self) -> None:
        without_order = parse("CAM(of=AP,weights={quality:.5,relevance:.5})").bound(self.aspects)
        reordered = parse("CAM(of=AP,aspects=[quality,relevance],weights={relevance:.5,quality:.5})")
        assert without_order == reordered.bound(self.aspects)
        assert "aspects=[relevance,quality]" in without_order.text

    def test_bound_measure_has_the_aspects_of_its_weights(self) -> None:
        bound = parse("CAM(of=AP,weights={quality:1})").bound(self.aspects)
        assert str(bound) == "CAM(of=AP,aspects=[quality],weights={quality:1})"

    def test_measure_of_one_aspect_is_unchanged(self) -> None:
        assert str(parse("nDCG@5").bound(self.aspects)) == "nDCG@5"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("nDCG(aspect=qualty)@5", "the collection has no aspect 'qualty'; did you mean quality?"),
            ("CAM(of=AP,aspects=[relevance,stance])", "the collection has no aspect 'stance'"),
            ("CAM(of=AP,weights={stance:1})", "the collection has no aspect 'stance'"),
            ("CAM(of=AP,aspects=[relevance],weights={quality:1})", "name a weight for each aspect"),
            ("TOMA(of=AP,embedding={stance:[0,1]})", "the collection has no aspect 'stance'"),
            (
                "TOMA(of=AP,aspects=[quality],embedding={relevance:[0,1,2]})",
                "which is not one of the aspects",
            ),
        ],
    )
    def test_unknown_aspect_is_rejected(self, text: str, message: str) -> None:
        with pytest.raises(MeasureError) as problem:
            parse(text).bound(self.aspects)
        assert message in str(problem.value)


HOSTILE = {
    "digits": "AP@" + "1" * 3990 + "a",
    "digits and a decimal point": "RBP(p=" + "1" * 1990 + "." + "1" * 1990 + "e)",
    "arguments": "AP(" + ",".join(f"a{i}=1" for i in range(600)) + ")",
    "brackets": "CAM(of=" * 500,
    "quotes": "AP(aspect='" + "\\'" * 1900,
    "far too long": "AP" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_rejected_with_a_short_message(name: str) -> None:
    with pytest.raises(MeasureError) as problem:
        parse(HOSTILE[name])
    assert len(str(problem.value)) < 300


@given(st.text(max_size=40) | st.text("AP(of=nDCG@10,'\"\\{}[]:/.-1e)", max_size=40))
@settings(max_examples=400)
def test_random_text_round_trips_or_is_rejected(text: str) -> None:
    try:
        measure = parse(text)
    except MeasureError:
        return
    assert parse(measure.text) == measure


@given(st.text(min_size=1, max_size=20))
def test_aspect_name_round_trips_in_the_text(name: str) -> None:
    assume(all(character >= " " for character in name))
    assume(not any("\ud800" <= character <= "\udfff" for character in name))
    measure = parse("AP").having(aspect=name)
    assert dict(parse(measure.text).parameters) == {"aspect": name}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("credability", "; did you mean credibility?"),  # as similar to readability
        ("readabilty", "; did you mean readability?"),
        ("Relevence", "; did you mean relevance?"),
        ("stance", ""),
    ],
)
def test_hint_names_the_closest_word(word: str, expected: str) -> None:
    assert nearest(word, ["relevance", "readability", "credibility"]) == expected
