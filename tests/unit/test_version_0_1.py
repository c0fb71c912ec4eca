"""What version 0.1 wrote is read: users keep archives, platforms and stores for years."""

import json
import shutil
from pathlib import Path

import pytest

from lepaute.measure.archive import Archive
from lepaute.simulate import Hpl, predict
from lepaute.simulate.platform import load_platform
from lepaute.watch.store import open_store

WRITTEN = Path(__file__).parents[1] / "data" / "version_0_1"


def test_an_archive_is_intact_and_has_its_tables_and_commands() -> None:
    archive = Archive.open(WRITTEN / "archive.zip")
    assert archive.metadata["lepaute_version"] == "0.1.0"
    assert archive.table("observations/p2p.parquet")["size_bytes"].tolist() == [17, 4]
    assert archive.table("raw/block0/p2p.csv")["size_bytes"].tolist() == [17, 4]  # without the lines of provenance
    (command,) = json.loads(archive.read_bytes("commands.json"))
    assert (command["argv"], command["returncode"]) == (["probe", "--seed", "3"], 0)


@pytest.mark.filterwarnings("ignore::lepaute.errors.PredictionWarning")
def test_a_platform_predicts_as_the_one_that_is_shipped_today() -> None:
    hpl = Hpl(n=5000, nb=128, p=4, q=4)
    old = predict(hpl, load_platform(str(WRITTEN / "platform.yaml")), runs=3)
    new = predict(hpl, "dahu-2019-10", runs=3)
    # The same measurements, fitted alike; the shipped one has since got layers that widen intervals.
    assert old.time_s.mean == pytest.approx(new.time_s.mean, rel=0.1)


def test_a_store_is_read_and_becomes_one_of_this_version(tmp_path: Path) -> None:
    shutil.copytree(WRITTEN / "store", tmp_path / "store")
    with open_store(str(tmp_path / "store")) as store:
        values = store.values()
    sums = values.groupby("factor")["value"].agg(["count", "mean"])
    assert sums["count"].to_dict() == {"dgemm_rate_flops": 59, "mean_frequency_Hz": 59, "mean_temperature_degC": 59}
    assert sums.loc["mean_frequency_Hz", "mean"] == pytest.approx(2.1020e9, rel=1e-3)
    assert set(values["state"]) == {"done"}  # a column that the store of 0.1 may lack
