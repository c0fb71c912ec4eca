"""Ready studies: the questions of the literature, for any platform that has what they vary.

Each is a function of the platform and the application that gives a `Study`; `--print` writes it as a file to edit.
All but tuning compare effects alone: the same noise in both, so that few runs are enough.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isqrt
from typing import Any, NamedTuple

from lepaute.errors import InputError
from lepaute.kit.documents import guess
from lepaute.simulate.platform.nodes import refuse_groups
from lepaute.simulate.platform.population import known_population
from lepaute.simulate.platform.schema import Platform
from lepaute.study.schema import Study, study_of

#: Grids are at most this many times as long as they are wide.
LONGEST_GRID = 8
#: Nodes below a switch of a fat tree that is assumed, at most.
MAX_BELOW = 32


class Subject(NamedTuple):
    """What a ready study is about.

    name        : of the platform, or its file;  platform : itself
    application : fields of HPL, as in a study file; grid and n are chosen where they are not given
    lists       : values of such fields, where there are several
    """

    name: str
    platform: "Platform"
    application: Mapping[str, Any]
    runs: int = 5
    seed: int = 1
    lists: Mapping[str, Sequence[Any]] = {}
    fidelity: str = "auto"

    def base(self, *without: str, **more: Any) -> dict[str, Any]:
        """The base of the study; without : fields of the application that vary. Where the platform has no dgemm for
        the threads of a rank, the base is a cluster like it that has."""
        fields = {"n": 50_000, "nb": 128, "grid": grid_text(self.ranks), **self.application}
        kept = {field: value for field, value in fields.items() if field not in without}
        if self.platform.kernel("dgemm", self.threads) is None:
            more = {"nodes": self.platform.nodes.count} | more
        return {"application": {"name": "hpl", **kept}, "platform": self.name, "fidelity": self.fidelity, **more}

    def refuse_grid(self, why: str) -> None:
        """Raises InputError if a grid is given to a study that takes grids of its own."""
        if grids := self.chosen("grid"):
            raise InputError(f"--grid is {','.join(grids)}, and {why}; leave it out")

    def chosen(self, field: str) -> Sequence[Any]:
        """The values of a field of HPL that are given."""
        return self.lists.get(field) or [value for name, value in self.application.items() if name == field]

    @property
    def drawn(self) -> dict[str, Any]:
        """Of the base, where nodes that differ are needed: a cluster drawn once, unless the platform has a population
        for these threads, from which every run draws another."""
        population = known_population(self.platform)
        is_known = population is not None and population.threads == self.threads
        return {} if is_known else {"nodes": self.platform.nodes.count}

    @property
    def threads(self) -> int:
        return int(self.application.get("threads_per_rank", 1))

    @property
    def ranks(self) -> int:
        """As many as there is room for."""
        return self.platform.nodes.count * self.ranks_per_node

    @property
    def ranks_per_node(self) -> int:
        refuse_groups(self.platform, "studies without a file")
        return max(1, self.platform.nodes.cores // self.threads)

    def study(self, **content: Any) -> Study:
        """The study of this content, with runs and seed; crossed with the lists."""
        if self.lists:
            lists = {name: {"path": f"application.{name}", "levels": [*values]} for name, values in self.lists.items()}
            content = content | {"factors": lists | content.get("factors", {})}
        responses = ["time_s", "rate_gflops"] if content["question"] == "whatif" else ["time_s"]
        return study_of({"runs": self.runs, "seed": self.seed, "responses": responses, **content})

    def whatif(self, title: str, settings: Mapping[str, Any] | None = None, **content: Any) -> Study:
        """Study of what a change does by itself, on the base unless another is given; settings : more of `whatif`."""
        settings = {**(settings or {}), "same_noise": True}
        return self.study(question="whatif", title=title, whatif=settings, **{"base": self.base(), **content})


def temporal_variability(subject: Subject, levels: Sequence[float] = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)) -> Study:
    """How much slower HPL is where the duration of dgemm varies from call to call."""
    return subject.whatif(
        "HPL with a dgemm that varies from call to call, against a steady one",
        {"factor": "variation"},
        factors={"variation": {"path": "noise.dgemm", "levels": list(levels)}},
    )


def spatial_variability(subject: Subject, levels: Sequence[float] = (0.0, 0.5, 1.0, 2.0)) -> Study:
    """How much slower HPL is where CPUs differ more; nodes are drawn, from the population where there is one."""
    return subject.whatif(
        "CPUs that differ, against CPUs that are alike",
        {"factor": "spatial"},
        base=subject.base(**subject.drawn),
        factors={"spatial": {"path": "population.spatial", "levels": list(levels)}},
    )


def slowest_nodes(subject: Subject) -> Study:
    """Whether HPL is faster without the slowest nodes, on the best grid of each number of nodes."""
    subject.refuse_grid("slowest-nodes takes the best grid of each number of nodes")
    count, ranks = subject.platform.nodes.count, subject.ranks_per_node
    numbers = list(range(min(16, count // 4) + 1))
    model = subject.platform.kernel("dgemm", subject.threads)
    differs = model is not None and model.pieces[-1].per_cpu is not None
    grids = [grid for number in numbers for grid in _grids_of((count - number) * ranks)]
    return subject.whatif(
        "HPL without the slowest nodes, on the best grid of each number of nodes",
        {"factor": "left_out", "best_of": ["grid"]},
        base=subject.base("grid", **({} if differs else {"nodes": count})),
        factors={
            "left_out": {"path": "mapping.without_slowest", "levels": numbers},
            "grid": {"path": "application.grid", "levels": list(dict.fromkeys(grids))},
        },
        constraints=[f"p * q == {ranks} * ({count} - left_out)"],
    )


def top_switches(subject: Subject, tree: str | None = None, cables: str | None = None) -> Study:
    """What it costs to remove top switches of a fat tree of two levels, and what one switch would gain.

    tree : SimGrid's notation; the platform's own, or one of full width, unless given
    cables : of parallel ones all or the first; without it both, where the tree has some and is not the platform's
    """
    shape = _tree(subject.platform, tree)
    scenarios: dict[str, Any] = {}
    for rule in (cables, "first") if cables is None and shape.cables > 1 and not shape.actual else (cables,):
        for top in range(shape.parents, 0, -1):
            name = f"{top} top switch{'es' * (top > 1)}{', first cables' * (rule != cables)}"
            scenarios[name] = shape.with_top(top, rule)
    if not shape.actual or subject.platform.topology.levels is None:  # what its cables cost has no place in one switch
        scenarios["one switch"] = {"platform.topology": {"kind": "switch"}}
    return subject.whatif("A fat tree with fewer top switches", scenarios=scenarios)


def variability_and_topology(subject: Subject, tree: str | None = None) -> Study:
    """Variability of calls and of CPUs, crossed with top switches of a fat tree: which matters, and if they add up."""
    shape = _tree(subject.platform, tree)
    tops = sorted({shape.parents, -(-shape.parents // 2), 1}, reverse=True)
    topology = {"kind": "fat-tree", "parameters": shape.parameters(shape.parents)}
    return subject.study(
        question="sensitivity",
        title="Variability of calls and of CPUs, crossed with the topology",
        base=subject.base(**subject.drawn, **({} if shape.actual else {"set": {"topology": topology}})),
        factors={
            "variation": {"path": "noise.dgemm", "levels": [0.0, 0.05, 0.1]},
            "spatial": {"path": "population.spatial", "levels": [0.0, 1.0, 2.0]},
            "tree": {"path": "platform.topology.parameters", "levels": [shape.parameters(top) for top in tops]},
        },
    )


def components(subject: Subject, factor: float = 10.0) -> Study:
    """What a processor, links or latencies ten times as good or as bad would change."""
    scenarios: dict[str, Any] = {"baseline": {}}
    for component, what in (("computing", "speed"), ("bandwidth", "bandwidth"), ("latency", "latency")):
        scenarios[f"{what} x {factor:g}"] = {f"scale.{component}": factor}
        scenarios[f"{what} / {factor:g}"] = {f"scale.{component}": 1.0 / factor}
    return subject.whatif(f"Each component {factor:g} times as good or as bad", scenarios=scenarios)


def rank_mapping(subject: Subject, tree: str | None = None, draws: int = 3) -> Study:
    """What it costs to lay ranks on cores at random, on the fat tree and with one top switch."""
    shape = _tree(subject.platform, tree)
    return subject.whatif(
        "Ranks laid on cores at random, against in sequence",
        {"factor": "order"},
        scenarios={"whole tree": shape.with_top(shape.parents), "one top switch": shape.with_top(1)},
        factors={
            "order": {"path": "mapping.kind", "levels": ["sequential", "random"]},
            "draw": {"path": "mapping.seed", "levels": list(range(1, draws + 1))},
        },
    )


def scaling(subject: Subject, points: int = 5) -> Study:
    """How a machine scales: ranks doubled four times, up to all of it, the matrix growing with the memory."""
    subject.refuse_grid("scaling takes the grid nearest to a square of each number of ranks")
    if "n" in subject.lists:
        raise InputError("--n has several values; weak scaling takes one, of the whole machine, and the others from it")
    n = int(subject.application.get("n", 50_000))
    scenarios: dict[str, Any] = {}
    for step in range(points - 1, -1, -1):
        if ranks := subject.ranks >> step:
            order = isqrt(n * n // 2**step)
            scenarios[f"{ranks} ranks"] = {"application.grid": grid_text(ranks), "application.n": order}
    title, responses = "Weak scaling: the matrix grows with the number of ranks", ["rate_gflops", "time_s"]
    return subject.whatif(title, scenarios=scenarios, responses=responses)


def nb_and_grid(subject: Subject) -> Study:
    """The best block size and grid; one of them alone where one value of the other is given."""
    sizes = subject.chosen("nb") or (64, 96, 128, 192, 256)
    return subject.study(
        question="tune",
        title="Block size and grid",
        base=subject.base("nb", "grid"),
        factors={
            "nb": {"path": "application.nb", "levels": list(sizes)},
            "grid": {"path": "application.grid", "levels": list(subject.chosen("grid") or _grids_of(subject.ranks))},
        },
    )


#: Name on the command line -> the study.
READY: Mapping[str, Callable[[Subject], Study]] = {
    study.__name__.replace("_", "-"): study
    for study in (
        *(temporal_variability, spatial_variability, slowest_nodes, top_switches, variability_and_topology),
        *(components, rank_mapping, scaling, nb_and_grid),
    )
}


def ready_study(name: str, subject: Subject) -> Study:
    """The ready study of this name; raises InputError if there is none."""
    if name not in READY:
        raise InputError(
            f"there is no ready study {name[:80]!r}{guess(name, list(READY))}; they are {', '.join(READY)}"
        )
    return READY[name](subject)


def _grids_of(ranks: int) -> list[str]:
    """Grids of this many ranks, P at most Q, the flattest first."""
    sides = [p for p in range(1, isqrt(ranks) + 1) if ranks % p == 0]
    chosen = [p for p in sides if ranks <= LONGEST_GRID * p * p]
    return [f"{p}x{ranks // p}" for p in chosen or sides[-1:]]


def grid_text(ranks: int) -> str:
    """The most nearly square grid PxQ of this many ranks, P at most Q."""
    p = next(p for p in range(isqrt(ranks), 0, -1) if ranks % p == 0)
    return f"{p}x{ranks // p}"


class _Tree(NamedTuple):
    """A fat tree of two levels: nodes of a leaf switch, leaf and top switches, cables from a leaf to each top switch.

    actual : whether it is the platform's, whose other fields stay
    """

    nodes: int
    leaves: int
    parents: int
    cables: int
    actual: bool

    def parameters(self, top: int) -> str:
        """The notation of the tree with this many top switches."""
        return f"2;{self.nodes},{self.leaves};1,{top};1,{self.cables}"

    def with_top(self, top: int, cables: str | None = None) -> dict[str, Any]:
        """What sets the tree with this many top switches; cables : all or the first of parallel ones."""
        parameters = self.parameters(top)
        if self.actual:
            return {"platform.topology.parameters": parameters}
        chosen = {"cables": cables} if cables else {}
        return {"platform.topology": {"kind": "fat-tree", "parameters": parameters, **chosen}}


def _tree(platform: "Platform", tree: str | None) -> _Tree:
    """The tree of this notation; without one the platform's, or one of full width."""
    actual = tree is None and platform.topology.kind == "fat-tree"
    tree = platform.topology.parameters if actual else tree
    if tree is None:
        count = platform.nodes.count
        below = max((each for each in range(1, MAX_BELOW + 1) if count % each == 0 and each < count), default=1)
        top = next(each for each in (4, 3, 2, 1) if below % each == 0)
        return _Tree(below, count // below, top, below // top, actual)
    try:
        levels, children, parents, cables = tree.split(";")
        below, leaves = map(int, children.split(","))
        found = _Tree(below, leaves, int(parents.split(",")[1]), int(cables.split(",")[1]), actual)
    except (ValueError, IndexError):
        levels, found = "", _Tree(0, 0, 0, 0, actual)
    if levels != "2" or min(found[:4]) < 1:
        raise InputError(f"the fat tree {tree[:80]!r} is not one of two levels, such as 2;32,8;1,4;1,8")
    return found
