"""The published what-if studies on a hypothetical cluster, repeated: variability, topology, slow nodes.

The simulations are the ready studies temporal-variability, top-switches and slowest-nodes of `lepaute study ready`.

    .venv/bin/python validation/sensitivity.py [--only temporal|switches|nodes] [--full] [--reference DIR] [--quick]

Fixed before any result was looked at:

* data: ../shared/reference/sensitivity, emulations with SMPI; dahu/kernels/dgemm_synthetic_1-10.csv.gz, ten platforms
  of 256 nodes, node i = row i;
* platform: one rank of 32 threads a node, rank r on node r; the network dahu_optimistic_2019; dgemm from the table with
  half-normal noise; the other kernels of Dahu without noise, copies and row swaps free; no layer of days
  (what_if/synthetic.py). "Removed nodes": those with the largest mnk; the others keep their order;
* parameters: NB 512, 2ring, depth 1, binary exchange, others the defaults of lepaute.Hpl; the broadcast, depth and swap
  of the topology and node studies are not published and are taken from the study of variability;
* runs: one for each published run, with the platform's number as seed; fidelity full;
* temporal: 8 x 32 ranks, sd / mean of dgemm 0 to 0.1, all 300 published runs. Goal: mean absolute difference in time
  (ours / published - 1) at most 3 %;
* switches: 16 x 16 ranks on a fat tree 2;32,8;1,k;1,8 with k = 4 to 1 top switches, and on one switch; all 250 runs. Of
  parallel cables only the first is used, as SimGrid did before 3.32 (2022); the study is of March 2020.
  Effect: time / time with 4 top switches - 1, mean over the platforms, for each N. Goals: same sign as the published
  effect wherever that is at least 2 %; no effect more than 5 points from the published one; the topologies in the
  published order, pair by pair;
* nodes (mild heterogeneity): all grids of 256 - k nodes for k = 0 to 16. Goals: all pairs of grids of the same nodes in
  the published order (mean time over the platforms); the effect of k on the time of the best grid, with signs and
  within 5 points as above. By default the subset of platforms 1 to 3 and N = 100,000, 300,000, 500,000 (the lowest
  numbers; the ends and the middle), 492 of 2745 runs; --full takes all;
* pairs whose published times differ by less than 2 % have no order: block sizes and huge pages alone shift an emulation
  by up to 1 %.

Shown, never judged: absolute differences in the last two studies.
"""

from types import ModuleType

import pandas
from support.options import Options, options_of
from support.report import finish, run_main
from what_if import removed_nodes, switches, temporal
from what_if.synthetic import NODES

STUDIES: dict[str, ModuleType] = {"temporal": temporal, "switches": switches, "nodes": removed_nodes}
OWN = {"--only": {"choices": list(STUDIES), "help": "one study"}}


def main() -> int:
    needs = (NODES, *(study.PUBLISHED for study in STUDIES.values()))
    options = options_of(__doc__, needs, has_subset=True, own=OWN)
    status = 0
    for name, study in STUDIES.items():
        if options.own.only in (None, name):
            status = max(status, show(options, study))
    return status


def show(options: Options, study: ModuleType) -> int:
    """One study; its exit status."""
    frame = pandas.read_csv(options.table(study.STUDY)) if options.summarise else study.compared(options)
    goals = study.judged(frame)
    return finish(options, study.STUDY, frame, goals, study.text(frame))


if __name__ == "__main__":
    run_main(main)
