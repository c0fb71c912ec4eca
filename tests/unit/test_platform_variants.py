"""Kernels that a platform has no model for: which model they take, and what its description says."""

from lepaute.simulate.platform.kernel_model import KernelModel, Noise, Piece, models_of, told_of_missing


def model(kernel: str, threads: int = 1) -> KernelModel:
    return KernelModel(kernel=kernel, threads=threads, pieces=(Piece(mean={"1": 1e-6}, noise=Noise()),))


def taken(models: list[KernelModel], kernel: str, threads: int) -> tuple[str, int] | None:
    found = models_of(models, [kernel], threads)
    return (found[kernel].kernel, found[kernel].threads) if found else None


def test_a_kernel_takes_its_own_model_then_its_routines_then_those_of_fewer_threads() -> None:
    dgemm, variant, swap = model("dgemm"), model("dgemm_nn"), model("dlaswp06T")
    assert taken([dgemm, variant], "dgemm_nn", 1) == ("dgemm_nn", 1)
    assert taken([dgemm], "dgemm_nn", 1) == ("dgemm", 1)
    assert taken([dgemm], "dger", 1) is None
    many = [dgemm, variant, swap, model("dgemm", 8)]
    assert taken(many, "dgemm_nn", 8) == ("dgemm", 8)
    assert taken(many, "dlaswp06N", 8) == ("dlaswp06T", 1)


def test_the_description_names_what_was_not_measured_and_what_it_costs() -> None:
    kernels = ["dgemm", "dgemm_nn", "dger"]
    assert told_of_missing([model(kernel) for kernel in kernels], kernels) == []
    assert told_of_missing([model("dgemm"), model("dger"), model("dgemm", 8)], kernels) == [
        "Not measured, and modelled by another kernel: dgemm_nn (dgemm).",
        "Not measured with 8 threads, and modelled by another kernel: dgemm_nn (dgemm), dger (dger, one thread).",
    ]
    assert told_of_missing([model("dgemm")], ["dger"]) == ["Not measured, and taken to cost nothing: dger."]
