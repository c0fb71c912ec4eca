"""`lepaute study tune --real-runs N`: the simulation proposes, a few runs of the real HPL on this machine decide."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.simulate import Hpl
    from lepaute.study.configuration import Configurations
    from lepaute.study.evaluation import Outcome, Point
    from lepaute.study.running import StudyRun
    from lepaute.verify.campaign import Case

#: Of the study's folder: predictions, their seal, and the journal of the real runs.
CAMPAIGN = "real"
#: Simulated runs of each candidate, with equal seeds: what they have in common tells what a real run of one says of
#: the others.
SIMULATED_RUNS = 20


def tuned_for_real(
    file: Path,
    folder: Path,
    real_runs: int,
    command: str,
    *,
    resume: bool,
    other_machine: bool,
    simulate: "Callable[[], StudyRun]",
) -> "StudyRun":
    """The study with the answer of real runs, written into its folder.

    command  : that was given, for the page
    simulate : runs the study, once it is known that its cases can be run here
    Raises InputError for a study that cannot be run here, or a platform of another machine.
    """
    from lepaute.cli.notes import notes_printed
    from lepaute.cli.progress import progress_bar
    from lepaute.cli.verify import watching
    from lepaute.cli.verify_site import opened_site, where_of
    from lepaute.kit.text import counted
    from lepaute.measure.schedulers import Request
    from lepaute.simulate import predict
    from lepaute.study.tune_for_real import candidates_of, check_for_real, corrected, write_corrected
    from lepaute.study.tune_real import MOST_REPEATED
    from lepaute.verify.campaign import Plan
    from lepaute.verify.chosen_runs import chosen_runs
    from lepaute.verify.real_run import built_program, check_machine
    from lepaute.verify.run_journal import held

    configurations, platform, cases = check_for_real(file, real_runs)
    for case in cases:
        check_machine(case)
    where = where_of(None, Request(), None, None, other_machine=other_machine)
    program = built_program(lambda what: print(what, file=sys.stderr))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the ranks of a real run must end too
    resumed = resume and (folder / CAMPAIGN).exists()
    with (
        notes_printed(),
        opened_site(
            where,
            platform,
            program,
            cases[0].threads_per_rank,
            None,
            calibrated=False,
            resumed=folder / CAMPAIGN if resumed else None,
        ) as (site, seen_program, _),
    ):
        run = simulate()
        points = candidates_of(run)
        study, conditions = run.study, configurations.at(points[0]).conditions
        guard = watching(platform, seen_program.coretype, other_machine=other_machine)
        with held(folder / CAMPAIGN), progress_bar() as tell, chosen_runs(
            [application_at(configurations, point) for point in points],
            seen_program,
            Plan(MOST_REPEATED, study.seed),
            lambda hpl: predict(
                hpl,
                platform,
                runs=SIMULATED_RUNS,
                seed=study.seed,
                layers=conditions.layers,
                fidelity=conditions.fidelity,
            ),
            folder / CAMPAIGN,
            site,
            tell,
            guard=guard,
            resume=resumed,
        ) as campaign:  # fmt: skip
            print(f"predictions written before the first real run: {campaign.seal.path}", file=sys.stderr)
            places = {point: place for place, point in enumerate(points)}
            simulated = [one for point in points for one in outcomes_of(point, campaign.cases[places[point]])]
            done = corrected(run, simulated, lambda point: campaign.run(places[point]), real_runs, study.seed)
            write_corrected(done, configurations, campaign.csv(), command)
        disturbed = sum(one.disturbed for one in campaign.runs)
        if disturbed:
            print(
                f"warning: {disturbed} of {counted(len(campaign.runs), 'real run')} were disturbed by other load; "
                f"{campaign.disturbed} of those that count had no undisturbed repetition",
                file=sys.stderr,
            )
    return done


def application_at(configurations: "Configurations", point: "Point") -> "Hpl":
    """The run of HPL at a point of a study that was checked."""
    from lepaute.simulate import Hpl

    application = configurations.at(point).application
    assert isinstance(application, Hpl)
    return application


def outcomes_of(point: "Point", case: "Case") -> "list[Outcome]":
    """The simulated runs of a sealed prediction, as a study has them."""
    from lepaute.study.evaluation import Outcome, Trial

    share = case.prediction.extrapolated_share or 0.0
    return [
        Outcome(Trial(point, run.seed), {"time_s": run.time_s}, share, sampling_sd=case.prediction.sampling_sd)
        for run in case.prediction.run_list
    ]
