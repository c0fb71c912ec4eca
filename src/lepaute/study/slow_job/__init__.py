"""Why was this job slow? A recorded run beside usual ones, and replays of it in which parts take what they usually do.

course      what a run did, as a graph of calls
matching    a slow run beside usual ones, piece by piece
suspects    groups of pieces that take longer than chance explains
shares      how much longer each makes the run
explaining  the answer, `why`, in the words of wording, and, by `support`, what a store of `watch` knows
page        the same as a page
"""

from typing import TYPE_CHECKING

from lepaute.kit.later import public_names

if TYPE_CHECKING:
    from lepaute.study.slow_job.explaining import why as why

__all__ = ["why"]
__getattr__, __dir__, _ = public_names(__name__)
