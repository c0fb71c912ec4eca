"""The published what-if studies on a hypothetical cluster, repeated: variability, topology, slow nodes.

The simulations are the ready studies of `lepaute study ready`. Fixed before any result was looked at:

* data: emulations with SMPI (../shared/reference/sensitivity); dahu/kernels/dgemm_synthetic_1-10.csv.gz, ten platforms
  of 256 nodes, one rank of 32 threads a node, kernels and network as in what_if/runs.py; NB 512, 2ring, depth 1,
  binary exchange (not published for topology and nodes, taken from the study of variability); one run, fidelity full,
  the platform's number as seed, for each published run;
* temporal: 8 x 32 ranks, sd / mean of dgemm 0 to 0.1, 300 runs. Goal: mean absolute difference in time at most 3 %;
* switches: 16 x 16 ranks on a fat tree 2;32,8;1,k;1,8 with k = 4 to 1, and on one switch; 250 runs. Of parallel cables
  only the first is used, as SimGrid did before 3.32. Goals: effects against 4 top switches (mean over platforms, each
  N) with the published sign where that is 2 % or more, none more than 5 points away; topologies in the published order;
* nodes: all grids of 256 - k nodes, k = 0 to 16 slowest (largest mnk) left out. Goals: pairs of grids in the published
  order; effects of k on the best grid as above. By default platforms 1 to 3 and three N, 492 of 2745 runs; --full takes
  all;
* pairs whose published times differ by less than 2 % have no order: block sizes and huge pages alone shift an emulation
  by up to 1 %. Never judged: absolute differences in the last two studies.
"""

from types import ModuleType

import pandas
from support.report import finish, options_of, run_main
from what_if import removed_nodes, switches, temporal
from what_if.runs import NODES

STUDIES: dict[str, ModuleType] = {"temporal": temporal, "switches": switches, "nodes": removed_nodes}
OWN = {"--only": {"choices": list(STUDIES), "help": "one study"}}


def main() -> int:
    needs = (NODES, *(study.PUBLISHED for study in STUDIES.values()))
    options = options_of(__doc__, needs, has_subset=True, own=OWN)
    status = 0
    for name, study in STUDIES.items():
        if options.own.only in (None, name):
            frame = pandas.read_csv(options.table(study.STUDY)) if options.summarise else study.compared(options)
            status = max(status, finish(options, study.STUDY, frame, study.judged(frame), study.text(frame)))
    return status


if __name__ == "__main__":
    run_main(main)
