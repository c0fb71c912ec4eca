"""No part that makes more than 5 % of a predicted time is drawn without an error.

The share of a part is how much faster the run is where the part costs a tenth less, without any layer. A part with
such a share is looked at alone: on a platform where all else costs nothing, runs with all layers must differ by more
than what the application draws by itself.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from long_tests import long_but
from oracles.emulated import build, source_of
from oracles.emulation_examples import EXAMPLES
from support_fit import kernel_rows, message_rows, write_calibration

from lepaute.measure.archive import Archive
from lepaute.measure.fit.fitted_models import platform_from_archive
from lepaute.simulate import Hpl, Layers, Stencil, predict
from lepaute.simulate.application import Application
from lepaute.simulate.apps.program import Program
from lepaute.simulate.machine.population import slower_segments
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from, scaled
from lepaute.simulate.platform.network_model import Network, Segment
from lepaute.simulate.smpi.emulate import Options

WORTH_AN_ERROR = 0.05
#: Runs that differ by less than this have no error to speak of.
MIN_SPREAD = 1e-3
#: Of nothing: durations must not be nought.
NOTHING = 1e-9
SHIPPED = (
    *("dahu-2019-04", "dahu-2019-07", "dahu-2019-10", "dahu-2020-01", "dahu-2020-01-loaded"),
    *("exascale-like", "stampede-like"),
)
PLATFORMS = (*SHIPPED, "data sheet", "calibrated")
NATIVE: dict[str, Application] = {
    "HPL": Hpl(n=1000, nb=64, p=2, q=4),
    "stencil": Stencil(cells=(24, 24, 24), grid=(2, 2, 2), cell_time_s=1e-10, iterations=5),
    "stencil of large faces": Stencil(cells=(200, 200, 200), grid=(2, 2, 2), cell_time_s=1e-11, iterations=2),
}


@pytest.fixture(scope="module")
def platforms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Platform]:
    """By name; the calibrated one is of a simulated calibration whose starts differ by 8 %."""
    messages = message_rows()
    factor = np.exp(0.08 * np.random.default_rng(6).normal(size=5))[messages["block"]]
    archive = write_calibration(
        tmp_path_factory.mktemp("law") / "c.zip",
        kernels=kernel_rows(),
        messages=messages.assign(duration_s=messages["duration_s"] * factor),
    )
    calibrated = override(platform_from_archive(Archive.open(archive), "calibrated")[0], {"nodes.count": "4"})
    sheet = DataSheet(4, 1, 4, dgemm_flops=45e9, link_Bps=12.5e9, latency_s=1.5e-6)
    made = {"data sheet": platform_from(sheet, load_platform("dahu")), "calibrated": calibrated}
    return {name: load_platform(name) for name in SHIPPED} | made


def with_kernels(platform: Platform, factor: Callable[[str], float]) -> Platform:
    """`platform` with kernels that take so many times as long, by name."""

    models_of = [
        scaled(model, factor(model.kernel), model.discrepancy_relative_sd, "as before") for model in platform.kernels
    ]
    return platform.model_copy(update={"kernels": tuple(models_of), "population": None})


def with_messages(platform: Platform, transfers: float, overheads: float, probes: float) -> Platform:
    """`platform` with parts of messages that take so many times as long."""

    def longer(segments: tuple[Segment, ...] | None) -> tuple[Segment, ...] | None:
        return segments and slower_segments(segments, (transfers, overheads))

    def of(links):  # type: ignore[no-untyped-def]
        update = {"segments": longer(links.segments), "noncontiguous": longer(links.noncontiguous)}
        if links.busy is not None:
            update["busy"] = links.busy.model_copy(update={"segments": longer(links.busy.segments)})
        return links.model_copy(update=update)

    network: Network = platform.network
    loopback, link = of(network.loopback), network.node_link
    costs = {name: getattr(network.costs, name) * probes for name in ("iprobe_s", "test_s")}
    changed = {
        "loopback": loopback.model_copy(update={"bandwidth_Bps": loopback.bandwidth_Bps / transfers}),
        "remote": of(network.remote),
        "node_link": link.model_copy(update={"bandwidth_Bps": link.bandwidth_Bps / transfers}),
        "costs": network.costs.model_copy(update=costs),
    }
    topology = platform.topology.model_copy(update={"levels": None})
    return platform.model_copy(update={"network": network.model_copy(update=changed), "topology": topology})


PARTS = ("transfers", "overheads", "probes")


def altered(platform: Platform, part: str, factor: float, others: float = 1.0) -> Platform:
    """`platform` with a part of the time `factor` times as long, and all others `others` times."""
    messages = {name: factor if name == part else others for name in PARTS}
    return with_messages(with_kernels(platform, lambda name: factor if name == part else others), **messages)


def logs(application: Application, platform: Platform, layers: Layers, runs: int) -> np.ndarray:
    return np.log([run.time_s for run in predict(application, platform, runs=runs, layers=layers).run_list])


def parts_without_error(application: Application, platform: Platform, runs: int = 4) -> Iterator[tuple[str, float]]:
    """Parts with their shares, of those that make more than 5 % of the time."""
    none = Layers.only()
    kernels = {model.kernel for model in platform.kernels} if application.on(platform).kernels.modelled else set()
    usual = logs(application, altered(platform, "", 1.0), none, 1)
    for part in (*PARTS, *sorted(kernels)):
        less = logs(application, altered(platform, part, 0.9), none, 1)
        share = float((usual - less)[0] / -np.log(0.9))
        if share > WORTH_AN_ERROR:
            alone = altered(platform, part, 1.0, NOTHING)
            spread = np.ptp(logs(application, alone, Layers(), runs) - logs(application, alone, none, runs))
            if spread < MIN_SPREAD:
                yield part, share


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("application", NATIVE)
def test_no_part_of_a_simulated_time_is_without_an_error(application, platform, platforms):
    assert list(parts_without_error(NATIVE[application], platforms[platform])) == []


def test_the_law_sees_a_part_without_an_error(platforms: dict[str, Platform]) -> None:
    stated = {f"network.{links}.overhead_relative_sd": "0" for links in ("remote", "loopback")}
    found = dict(parts_without_error(NATIVE["stencil"], override(platforms["dahu-2020-01"], stated)))
    assert list(found) == ["overheads"]
    assert found["overheads"] > 0.5


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.parametrize("platform", long_but(["dahu-2020-01", "data sheet", "calibrated"], "calibrated"))
def test_no_part_of_an_emulated_time_is_without_an_error(platform, platforms, tmp_path):
    """A master with workers, and conjugate gradients: small messages and reductions are nearly all of the time."""
    options = Options(computing="none")
    programs = [
        Program(build(tmp_path, "master", source_of("emulated_master.c")), (), 8, options=options),
        Program(build(tmp_path, "cg", (EXAMPLES / "cg" / "cg.c").read_text(), "-lm"), ("20", "20"), 8, options=options),
    ]
    for program in programs:
        assert list(parts_without_error(program, platforms[platform], runs=2)) == []
    # The choice of algorithms is a part of its own.
    assert np.ptp(logs(programs[1], platforms[platform], Layers.only("collectives"), 4)) > MIN_SPREAD
    said = Program(programs[1].path, programs[1].arguments, 8, options=Options("none", collectives="mpich"))
    assert np.ptp(logs(said, platforms[platform], Layers.only("collectives"), 2)) == 0.0
