"""The hypothetical cluster of the what-if studies: 256 synthetic nodes on the network of Dahu."""

import pandas

from lepaute import Platform, load_platform

NODES = "dahu/kernels/dgemm_synthetic_1-10.csv.gz"
THREADS = 32  # one rank of 32 threads a node
#: What the published simulations let cost nothing.
FREE = ("dlacpy", "dlatcpy", "dlaswp01T", "dlaswp02N", "dlaswp03T", "dlaswp04T")


def synthetic_platform(nodes: pandas.DataFrame) -> Platform:
    """The platform of the synthetic nodes of one platform_id: rows of the table NODES, row i being node i.

    dgemm is mean intercept + mnk M N K with half-normal noise of sd mnk_residual M N K. The other kernels are those of
    Dahu without noise, copies and row swaps free, as in the published simulations; they know no threads. The network
    is dahu_optimistic_2019: that of the shipped dahu-2019-04 without its second state of messages, to ranks that
    compute between probes, which the published simulations do not have.
    """
    kept = nodes.sort_values("node")
    spread = kept["mnk_residual"]
    noisy = bool((spread > 0.0).any())
    rows = [
        [place, 0, mnk, intercept, *([sd] if noisy else [])]
        for place, (mnk, intercept, sd) in enumerate(zip(kept["mnk"], kept["intercept"], spread, strict=True))
    ]
    dgemm = {
        "mean": {"mnk": kept["mnk"].mean(), "1": kept["intercept"].mean()},
        "noise": {"kind": "half-normal", "sd": {"mnk": spread.mean()}} if noisy else {"kind": "none"},
        "per_cpu": {"columns": ["node", "cpu", "mnk", "1", *(["sd:mnk"] if noisy else [])], "rows": rows},
    }
    dahu = load_platform("dahu-2019-04")
    network = dahu.network.model_dump()
    for place in ("loopback", "remote"):
        network[place]["busy"] = None
    others = [
        {"kernel": model.kernel, "threads": THREADS, "pieces": [{"mean": free_or_mean(model.kernel, piece.mean)}]}
        for model in dahu.kernels
        if model.kernel != "dgemm"
        for piece in model.pieces
    ]
    content = {
        "name": f"synthetic-{len(kept)}-nodes",
        "nodes": {"count": len(kept), "cores": THREADS, "cpus": 1},
        "kernels": [{"kernel": "dgemm", "threads": THREADS, "pieces": [dgemm]}, *others],
        "network": network,
    }
    return Platform.model_validate(content)


def free_or_mean(kernel: str, mean: dict[str, float]) -> dict[str, float]:
    """The mean of a kernel of Dahu, or nothing where the published simulations let it cost nothing."""
    return {"1": 0.0} if kernel in FREE else dict(mean)
