"""What a run lost, and to what: of recordings, other programs' traces and simulations alike.

efficiency     how well the ranks were used, by the factors of the POP Centre of Excellence
critical_path  the calls and messages that the run took as long as
wait_states    who waited, why, and for whom, in the words of Scalasca
regions        computing, by parts of the program, and how evenly ranks share it
analysing      all of it for one trace;  report, page: in words, as JSON, and as a page
"""

from lepaute.simulate.analysis.analysing import Analysis, analysis_of
from lepaute.simulate.analysis.page import page
from lepaute.simulate.analysis.report import analysis_dict, facts_of, tables_text

__all__ = ["Analysis", "analysis_dict", "analysis_of", "facts_of", "page", "tables_text"]
