"""Why was this job slow? A recorded run beside usual ones, and replays of it in which parts take what they usually do.

course      what a run did, as a graph of calls
matching    a slow run beside usual ones, piece by piece
suspects    groups of pieces that take longer than chance explains
shares      how much longer each makes the run
explaining  the answer;  wording : its words;  support : what a store of `watch` knows;  page : the answer as a page
"""
