"""`lepaute emulate hpl`: HPL's own code on a simulated machine."""

import json
import sys
from typing import Annotated, Any

import typer

from lepaute.cli.emulate_trace import EmulatedTrace
from lepaute.cli.option_fields import with_options_of
from lepaute.cli.output_options import Force
from lepaute.cli.simulation_options import (
    AsJson,
    Placement,
    PlatformName,
    Runs,
    Seed,
    Settings,
    TraceFiles,
    Uncertainty,
    applications_of,
    platform_of,
)
from lepaute.simulate.apps.hpl import Hpl
from lepaute.simulate.apps.hpl.parameters import HplFiles


@with_options_of(HplFiles, "files", leave_out=("output",))
@with_options_of(Hpl, "values", may_lack=("n",), make=dict)
@with_options_of(Placement, "placement")
@with_options_of(Uncertainty, "uncertainty")
@with_options_of(TraceFiles, "traces", leave_out=("trace_ranks", "trace_steps"))
def hpl(
    context: typer.Context,
    platform: PlatformName,
    files: HplFiles,
    values: dict[str, Any],
    placement: Placement,
    uncertainty: Uncertainty,
    traces: TraceFiles,
    settings: Settings = None,
    runs: Runs = 1,
    seed: Seed = 1,
    timeout: Annotated[float, typer.Option("--timeout", help="wall seconds of a run")] = 3600.0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Emulates the real HPL with simulated kernels: what `predict hpl` predicts, by its own code."""
    import signal

    from lepaute.cli.emulate_text import tell_progress
    from lepaute.cli.predict_text import readable
    from lepaute.kit.outputs import check_outputs
    from lepaute.measure.hpl_source import SHA256, unpack_source
    from lepaute.platform import load_platform
    from lepaute.simulate import predict_all
    from lepaute.simulate.apps.hpl.emulation import START_S, build_hpl_smpi
    from lepaute.simulate.smpi.emulate import Smpi
    from lepaute.simulate.smpi.process import Limits

    inputs = [platform, *files.inputs, *placement.inputs, *uncertainty.inputs]
    check_outputs(traces.outputs, inputs=inputs, force=force)
    layers, learnt = uncertainty.layers(), uncertainty.learnt()
    hpls, from_file = applications_of(context, Hpl, values, files)
    # A batch system ends a job with SIGTERM: SimGrid's process must end too, and its folder go.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given_platform = load_platform(platform)
    machine, overrides = platform_of(given_platform, settings)
    mapping = placement.on(machine, hpls[0].threads_per_rank)
    program = build_hpl_smpi(unpack_source, SHA256)
    with EmulatedTrace(traces) as kept:
        with tell_progress() as on_progress:
            engine = Smpi(program, limits=Limits(timeout), on_progress=on_progress, keep=kept.keep)
            predictions = predict_all(
                hpls,
                given_platform,
                runs=runs,
                seed=seed,
                layers=layers,
                settings=overrides,
                mapping=mapping,
                engine=engine,
                transfer=learnt,
                lag_s=uncertainty.lag_s,
            )
        if as_json:
            objects = [prediction.to_dict() for prediction in predictions]
            json.dump({"predictions": objects} if from_file else objects[0], sys.stdout, indent=2)
            sys.stdout.write("\n")
        else:
            print("\n".join(readable(prediction, machine) for prediction in predictions))
        kept.write(predictions[0], (START_S, START_S + predictions[0].run_list[0].time_s))
