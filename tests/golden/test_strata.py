"""Strata of fixed archives: a store keeps them for years, so that another text of the same conditions would end all
references. Where a change is meant (values are measured or computed otherwise), the digits below are to be replaced."""

from pathlib import Path

from support_factors import SIZES, calibration, experiment, samples
from support_fit import message_rows

from lepaute.measure.archive import Archive
from lepaute.watch.factors import factors_of

DESIGN = "#@columns=kind:text,m:int,n:int,k:int\ndesign_row,kind,m,n,k\n" + "".join(
    f"{row},dgemm,{m},{n},{k}\n" for row, (m, n, k) in enumerate(SIZES)
)
PINNED = {
    "dgemm_rate_flops": "8986c1c6b13103bb",
    "loopback_latency_s": "9ee7dd80a9f79b55",
    "cpu_power_W": "f2af9e998e62bf56",
}


def test_strata_of_fixed_archives_stay_as_they_are(tmp_path: Path) -> None:
    messages = message_rows().assign(operation="pingpong", host="n1", peer="n1", distance="same-l3")
    messages["size_bytes"] = [1 << number % 24 for number in range(len(messages))]
    one = calibration(tmp_path / "a.zip", tables={"p2p": messages}, variables={"OMP_PROC_BIND": "true"})
    monitoring = {"n1": samples(power_package0_watt=100.0)}
    other = experiment(tmp_path / "b.zip", design=DESIGN, monitoring=monitoring, parameters={"repetitions": 3})
    found = {}
    for path in (one, other):
        table = factors_of(Archive.open(path), "c")
        found |= dict(table[["factor", "stratum"]].drop_duplicates("factor").itertuples(index=False, name=None))
    assert {factor: found[factor] for factor in PINNED} == PINNED
