"""Data model of evaluation.

It consists of aspects, judgments, rankings, joined runs and document texts.

All are immutable values over flat numpy arrays. Topics are sorted by the UTF-8 bytes of their ids, which is
Python's order of strings. A pool is sorted by document id within its topic.
"""

from cupel_measures.model.arrays import Exact as Exact
from cupel_measures.model.arrays import Floats as Floats
from cupel_measures.model.arrays import Ids as Ids
from cupel_measures.model.arrays import Ints as Ints
from cupel_measures.model.aspects import Aspect as Aspect
from cupel_measures.model.aspects import Label as Label
from cupel_measures.model.aspects import LabelSet as LabelSet
from cupel_measures.model.document_texts import Content as Content
from cupel_measures.model.document_texts import Texts as Texts
from cupel_measures.model.judgments import ABSENT as ABSENT
from cupel_measures.model.judgments import NEGATIVE as NEGATIVE
from cupel_measures.model.judgments import UNJUDGED as UNJUDGED
from cupel_measures.model.judgments import Qrels as Qrels
from cupel_measures.model.judgments import Subtopics as Subtopics
from cupel_measures.model.rankings import Joined as Joined
from cupel_measures.model.rankings import Ranking as Ranking
from cupel_measures.model.rankings import Run as Run
