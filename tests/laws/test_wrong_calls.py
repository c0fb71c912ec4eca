"""Wrong calls of the public interface are refused in the words of Lepaute, whatever is wrong about them."""

import pytest

import lepaute as lp
from lepaute.errors import LepauteError

HPL = lp.Hpl(n=2000, nb=128, p=2, q=2)
WRONG = {"None": None, "number": 3, "list": [1]}

CALLS = {
    "predict: application": lambda wrong: lp.predict(wrong, "dahu"),
    "predict: platform": lambda wrong: lp.predict(HPL, wrong),
    "predict: runs": lambda wrong: lp.predict(HPL, "dahu", runs=wrong),
    "predict: seed": lambda wrong: lp.predict(HPL, "dahu", seed=wrong),
    "predict: layers": lambda wrong: lp.predict(HPL, "dahu", layers=wrong),
    "predict: mapping": lambda wrong: lp.predict(HPL, "dahu", mapping=wrong),
    "predict: trace": lambda wrong: lp.predict(HPL, "dahu", trace=wrong),
    "predict: settings": lambda wrong: lp.predict(HPL, "dahu", settings=wrong),
    "predict: a setting": lambda wrong: lp.predict(HPL, "dahu", settings={"scale.bandwidth": wrong}),
    "predict: an unknown setting": lambda wrong: lp.predict(HPL, "dahu", settings={"network.foo": wrong}),
    "simulate_one: application": lambda wrong: lp.simulate_one(wrong, "dahu"),
    "simulate_one: platform": lambda wrong: lp.simulate_one(HPL, wrong),
    "simulate_one: seed": lambda wrong: lp.simulate_one(HPL, "dahu", wrong),
    "difference": lambda wrong: lp.difference(wrong, wrong),
    "emulate: program": lambda wrong: lp.emulate(wrong, "dahu", ranks=2),
    "emulate: ranks": lambda wrong: lp.emulate("program", "dahu", ranks=wrong),
    "load_platform": lp.load_platform,
    "Archive.open": lp.Archive.open,
    "Hpl: n": lambda wrong: lp.Hpl(n=wrong, nb=128, p=2, q=2),
    "Hpl: bcast": lambda wrong: lp.Hpl(n=2000, nb=128, p=2, q=2, bcast=wrong),
    "Stencil: cells": lambda wrong: lp.Stencil(cells=wrong),
    "Layers.only": lp.Layers.only,
    "Layers: noise": lambda wrong: lp.Layers(noise=wrong),
    "Target": lp.Target,
    "Until: target": lambda wrong: lp.Until(target=wrong),
    "Job": lp.Job,
    "read_trace": lp.read_trace,
    "fit.models": lp.fit.models,
    "fit.segment": lambda wrong: lp.fit.segment(wrong, wrong),
    "fit.read_durations": lp.fit.read_durations,
    "study.run": lp.study.run,
    "watch.open": lp.watch.open,
    "compare.archives": lp.compare.archives,
    "measure_libraries": lambda wrong: lp.measure_libraries(wrong, "campaign.zip"),
    "measure_sessions": lambda wrong: lp.measure_sessions(["openmpi"], "campaign.zip", sessions=wrong),
    "run": lambda wrong: lp.run(wrong, "run.zip"),
}
#: What these take, or take as the default.
TAKEN = {
    *((f"predict: {name}", "None") for name in ("runs", "layers", "mapping", "trace", "settings")),
    ("predict: runs", "number"), ("predict: seed", "number"), ("predict: a setting", "number"),
    ("simulate_one: seed", "number"), ("Target", "number"), ("Job", "None"), ("Hpl: n", "number"),
}  # fmt: skip
TEXTS = {
    "predict: application": "hpl", "predict: platform": "Dahu", "predict: runs": "2", "predict: seed": "1",
    "predict: layers": "noise", "predict: mapping": "random", "predict: settings": "scale.bandwidth=2",
    "predict: an unknown setting": "1", "simulate_one: application": "hpl", "simulate_one: seed": "1",
    "difference": "prediction.json", "emulate: ranks": "2", "load_platform": "Dahu", "Archive.open": "none.zip",
    "Hpl: n": "2000", "Hpl: bcast": "3ring", "Stencil: cells": "64", "Layers.only": "nois", "Layers: noise": "yes",
    "Target": "0.05", "Until: target": "0.02", "Job": "hand.zip", "read_trace": "none.parquet",
    "fit.models": "none.zip", "fit.segment": "abc", "study.run": "none.yaml",
    "watch.open": "postgressql://host/base", "compare.archives": "none.zip", "measure_libraries": "openmpj",
    "measure_sessions": "3",
    "run": "job",
}  # fmt: skip
CASES = [
    *((name, wrong) for name in CALLS for kind, wrong in WRONG.items() if (name, kind) not in TAKEN),
    *TEXTS.items(),
]


@pytest.mark.parametrize(("name", "wrong"), CASES, ids=[f"{name}: {wrong!r}" for name, wrong in CASES])
def test_a_wrong_argument_is_refused_by_one_short_error_of_lepaute(name, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LepauteError) as refused:
        CALLS[name](wrong)
    assert len(str(refused.value)) < 1000
    assert "incompatible function arguments" not in str(refused.value)


def test_at_least_a_hundred_wrong_calls_are_tried():
    assert len(CASES) >= 100
