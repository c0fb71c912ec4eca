"""What the generators of designs put into their tables, and the commands that write and show them."""

import collections
import dataclasses
import itertools
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from support_hpl_counts import simulated

import lepaute as lp
from lepaute import _core
from lepaute.cli.main import main
from lepaute.errors import DesignError
from lepaute.measure.design import (
    Design,
    dgemm_calls_design,
    dgemm_sizes_design,
    full_factorial,
    hpl_step_design,
    latin_hypercube,
    log_uniform,
    p2p_design,
    read_design,
    ring_design,
    sample,
    uniform,
)
from lepaute.measure.design.columns import RING_CONDITIONS, RING_OPERATIONS
from lepaute.measure.design.hpl_step import MIN_RUNS, StepOptions, drawn_step_options
from lepaute.measure.design.memory import hierarchy_sizes
from lepaute.measure.design.messages import PANEL, PRODUCT_ROWS
from lepaute.measure.design.table import parse_design
from lepaute.measure.fit.observations.calls import FIRST_TOUCH, MODELLED, PHASES
from lepaute.simulate.apps.hpl.parameters import Hpl


def test_the_p2p_design_has_the_counts_asked_for_and_unsized_operations_have_no_size() -> None:
    design = p2p_design(1, counts={"recv": 7, "wtime": 3})
    assert collections.Counter(row[0] for row in design.rows) == {"recv": 7, "wtime": 3}
    assert all(size == 0 for operation, size in design.rows if operation == "wtime")


def test_a_rank_of_a_long_process_column_has_the_work_of_one_of_two() -> None:
    two, sixteen = hpl_step_design(4).rows, hpl_step_design(4, ranks=16).rows
    assert [(kind, m * 8, *rest) for kind, m, *rest in two] == list(sixteen)  # type: ignore[operator]
    assert hpl_step_design(4, ranks=1).rows == two


def test_runs_with_options_of_hpl_and_those_with_the_defaults_call_every_kernel() -> None:
    def called(options: StepOptions, p: int) -> set[str]:
        hpl = Hpl(n=96, nb=24, p=p, q=1, depth=0, **{**dataclasses.asdict(options), "equil": bool(options.equil)})
        return {name for name, use in simulated(hpl).kernels.items() if use.calls}

    of_hpl = set(_core.kernel_names()) - {"sweep", FIRST_TOUCH}  # the stencil's, and what a run does once
    default = called(StepOptions(), 1) | called(StepOptions(), 3)
    for seed in range(5):
        for runs in (MIN_RUNS, 5):
            drawn = drawn_step_options(np.random.default_rng(seed), runs)
            assert default.union(*(called(options, 3) for options in drawn)) == of_hpl


def test_a_fit_knows_every_kernel_that_hpl_calls() -> None:
    assert MODELLED | {FIRST_TOUCH, *PHASES.values()} == set(_core.kernel_names()) - {"sweep"}


def test_every_call_occurs_under_every_combination_in_an_order_of_its_own() -> None:
    plain = lp.design.dgemm_design(1, products=3, product_range=(1e3, 1e6), most=(500, 500, 500))
    contents = ["random", "masked:40", "constant"]
    design = lp.design.with_conditions(plain, contents=contents, warm=[0, 1], replications=2, seed=4)
    counted = collections.Counter(design.rows)
    expected = collections.Counter(
        {(*row, content, warm): 2 * many for row, many in collections.Counter(plain.rows).items()
         for content in contents for warm in (0, 1)}
    )  # fmt: skip
    assert counted == expected
    assert list(design.rows) != sorted(design.rows)
    again = lp.design.with_conditions(plain, contents=contents, warm=[0, 1], replications=2, seed=4)
    assert design.to_csv() == again.to_csv()
    assert design.to_csv() != lp.design.with_conditions(plain, contents=contents, warm=[0, 1], seed=5).to_csv()


def test_the_command_crosses_its_calls_with_the_conditions(tmp_path: Path) -> None:
    words = "--products 2 --highest 1e5 --max-n 300 --content random,constant:1.5,sequential,masked:0 --warm 0,1"
    assert main(["design", "dgemm", *words.split(), "-o", str(tmp_path / "d.csv")]) == 0
    design = read_design(tmp_path / "d.csv")
    assert design.columns == ("kind", "m", "n", "k", "content", "warm")
    assert set(design.column("content")) == {"random", "constant:1.5", "sequential", "masked:0"}
    assert len(design) % 8 == 0


def test_the_memory_design_has_allocations_of_its_own_and_batches_where_they_are_asked_for() -> None:
    sizes = hierarchy_sizes(1024, 8192)
    assert (sizes[0], sizes[-1]) == (1024, 8192)
    assert len(sizes) == 13
    assert all(size % 64 == 0 for size in sizes)
    options = {"strides": [1, 8], "element_bytes": [8], "unrolls": [8], "allocations": 2, "fresh": True}
    design = lp.design.memory_design(1, sizes_bytes=sizes, batch_bytes=[1 << 16, 1 << 20], blocks=3, **options)
    assert len(design) == 13 * 2 * 3 * 2 * 3
    assert set(design.column("allocation")) == {-1, 0, 1}
    assert set(design.column("batch_bytes")) == {1 << 16, 1 << 20}
    by_block = [[row for row in design.rows if row[0] == block] for block in range(3)]
    assert {frozenset(row[1:] for row in rows) for rows in by_block} == {frozenset(row[1:] for row in by_block[0])}
    assert by_block[0] != sorted(by_block[0])
    assert "batch_bytes" not in lp.design.memory_design(1, sizes_bytes=[1024]).columns
    with pytest.raises(DesignError, match="64 <= least < most"):
        hierarchy_sizes(4096, 1024)


def rows_of(design: Design) -> list[dict[str, object]]:
    return [dict(row) for row in design]


def test_every_size_of_an_operation_is_in_all_four_conditions_once() -> None:
    rows = rows_of(ring_design(3, ranks=4, sizes=9))
    assert len(rows) == 2 * 4 * 9
    for operation in RING_OPERATIONS:
        mine = [row for row in rows if row["operation"] == operation]
        sizes = {row["size_bytes"] for row in mine}
        assert Counter((row["condition"], row["size_bytes"]) for row in mine) == Counter(
            itertools.product(RING_CONDITIONS, sizes)
        )
        assert len(sizes) == 9


def test_products_are_there_where_the_condition_has_dgemm_and_the_largest_message_in_every_condition() -> None:
    rows = rows_of(ring_design(3, ranks=2, sizes=9))
    for row in rows:
        height, *panel = (row["m"], row["n"], row["k"])
        if "dgemm" in str(row["condition"]):
            assert panel == [PANEL, PANEL]
            assert PRODUCT_ROWS[0] <= int(str(height)) <= PRODUCT_ROWS[1]
        else:
            assert (height, *panel) == (0, 0, 0)
    heights = {(row["operation"], row["size_bytes"], row["m"]) for row in rows if row["m"]}
    assert len(heights) == 2 * 9
    rows = rows_of(ring_design(4, ranks=2, sizes=3, size_range_bytes=(1, 1 << 30)))
    assert sum(row["size_bytes"] == 1 << 30 for row in rows) == len(RING_OPERATIONS) * len(RING_CONDITIONS)
    assert min(int(str(row["size_bytes"])) for row in rows) < 1 << 10


def test_conditions_and_operations_are_mixed_and_a_seed_gives_one_table() -> None:
    design = ring_design(7, ranks=2, sizes=20)
    order = [(row["operation"], row["condition"]) for row in design]
    # Sorted by one of the 8 kinds there would be 8 stretches; in random order 160 rows have about 160 * 7 / 8.
    assert len(list(itertools.groupby(order))) > 110
    assert design.to_csv() == ring_design(7, ranks=2, sizes=20).to_csv() != ring_design(8, ranks=2, sizes=20).to_csv()
    assert parse_design(design.to_csv(), "d.csv") == design


def sizes(design) -> list[tuple[int, int, int]]:
    return [tuple(int(value) for value in row[1:]) for row in design.rows]


def test_sizes_come_by_their_shares_of_time_and_of_calls() -> None:
    # a quarter of the time and nine tenths of the calls in small ones
    used = [(100, 100, 8, 900.0, 1.0), (1000, 1000, 128, 50.0, 1.5), (2000, 1000, 128, 50.0, 1.5)]
    counted = Counter(sizes(dgemm_calls_design(1, used, rows=400)))
    # systematic sampling leaves at most one of each half to chance
    expected = {(100, 100, 8): 50 + 180, (1000, 1000, 128): 75 + 10, (2000, 1000, 128): 75 + 10}
    assert {size: counted[size] for size in expected} == {
        size: pytest.approx(count, abs=2) for size, count in expected.items()
    }
    assert sum(counted.values()) == 400


def test_independent_sizes_keep_their_bounds_and_are_independent() -> None:
    triples = np.array(
        sizes(dgemm_sizes_design(1, "independent", count=4000, most=(500, 300, 100), highest_product=1e9))
    )
    assert np.all(triples >= 1)
    assert triples.max(axis=0).tolist() <= [500, 300, 100]
    # uniform: mean at the middle, five standard errors
    assert np.all(np.abs(triples.mean(axis=0) / [250.5, 150.5, 50.5] - 1) < 5 * 0.577 / 4000**0.5)
    assert np.all(np.abs(np.corrcoef(triples.T) - np.eye(3)) < 5 / 4000**0.5)
    held = sizes(dgemm_sizes_design(1, "independent", count=200, most=(500, 500, 500), highest_product=1e6))
    assert max(m * n * k for m, n, k in held) <= 1e6


def test_products_are_uniform_and_come_in_all_orders() -> None:
    triples = sizes(dgemm_sizes_design(2, "product", count=1200, most=(20_000, 20_000, 20_000)))
    groups = Counter(tuple(sorted(triple)) for triple in triples)
    assert all(count == len(set(_orders(key))) * (count // len(set(_orders(key)))) for key, count in groups.items())
    products = np.sort([float(np.prod(key)) for key in groups])
    uniform = (np.arange(len(products)) + 0.5) / len(products) * 1.3e9
    assert np.max(np.abs(products - uniform)) < 0.02 * 1.3e9  # one in each stratum, but for rounding to whole sizes


def _orders(key: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(permutations(key))


def test_fixed_k_has_only_the_values_asked_for_in_equal_parts() -> None:
    design = dgemm_sizes_design(3, "fixed-k", count=600, fixed_k=(128, 256, 512))
    counted = Counter(k for _, _, k in sizes(design))
    assert set(counted) == {128, 256, 512}
    assert max(counted.values()) - min(counted.values()) <= 4
    assert design.header["k"] == "128 256 512"


def test_the_command_takes_the_sizes_of_a_run_and_says_what_they_are_for(tmp_path) -> None:
    file = tmp_path / "d.csv"
    command = ["design", "dgemm", "--for", "hpl", "--n", "8k", "--nb", "96", "--grid", "2x4", "--rows", "100"]
    assert main([*command, "-o", str(file)]) == 0
    design = read_design(file)
    assert {key: design.header[key] for key in ("for", "n", "nb", "p", "q", "rows")} == {
        "for": "hpl", "n": "8000", "nb": "96", "p": "2", "q": "4", "rows": "100",
    }  # fmt: skip
    by_time = sum(k == 96 for _, _, k in sizes(design))
    assert by_time >= 40  # nearly all the time is in updates, at the depth of a block
    assert all(m <= 4096 and n <= 2048 and k <= 96 for m, n, k in sizes(design))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--n", "500"], "--for hpl"),
        (["--for", "hpl"], "--n N"),
        (["--for", "hpl", "--n", "500", "--highest", "10"], "leave out --highest"),
        (["--sizes", "product", "--k", "5"], "fixed-k"),
        (["--rows", "5"], "log-product"),
        (["--sizes", "product", "--highest", "inf"], "--highest is inf"),
        (["--sizes", "fixed-k", "--highest", "nan"], "--highest is nan"),
        (["--for", "hpl", "--n", "1e300"], "does not fit in 64 bits"),
        (["--sizes", "independent", "--rows", "999999999999"], "--rows is '999999999999'; it must be at most"),
    ],
)
def test_options_that_mean_nothing_together_are_refused_in_one_line(options, told, refusal_of):
    assert told in refusal_of("design", "dgemm", *options)


PNG = b"\x89PNG\r\n\x1a\n"


def test_the_command_line_and_python_give_the_same_table(output_of):
    factors = {"size_bytes": [1, 1024, 1 << 20], "op": ["send", "a,b", "1"]}
    command = "design factorial --replications 2 --blocks 3 --seed 7 --factor size_bytes=1,1Ki,1Mi".split()
    assert (
        output_of(*command, "--factor", 'op=send,"a,b","1"')
        == full_factorial(factors, replications=2, blocks=3, seed=7).to_csv()
    )
    laws = {"n": log_uniform(1, 10**6), "x": uniform(0.0, 1.0)}
    for name, make in (("sample", sample), ("latin", latin_hypercube)):
        assert (
            output_of("design", name, "-f", "n=loguniform:1:1e6", "-f", "x=uniform:0.0:1", "--count", "9")
            == make(laws, count=9, seed=1).to_csv()
        )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            "-f a=1,2 -f b=1,2 -f c=1,2 --count 4",
            "4 of 8 combinations; main effects are mixed with interactions of two ",
        ),
        (
            "-f a=1,2 -f b=1,2 -f c=1,2 -f d=1,2 --count 8",
            "8 of 16 combinations; interactions of two factors are mixed ",
        ),
        ("-f a,b=1,2;3,4 -f c=1,2 -f d=1,2 --count 4", "4 of 8 combinations; main effects are mixed"),
        ("-f a=1,2,3 -f b=1,2 -f c=1,2 --count 6", "6 of 12 combinations, pairs of levels "),
        ("-f a=1,2 -f b=1,2 --count 4", "4 rows, all different"),
    ],
)
def test_a_fraction_says_what_it_leaves_out_and_mixes(given, told, tmp_path, output_of):
    assert output_of("design", "fractional", *given.split(), "-o", tmp_path / "f.csv").startswith(
        f"{tmp_path / 'f.csv'}: {told}"
    )


def test_show_tells_levels_ranges_blocks_and_first_rows(tmp_path, json_of, output_of):
    path = tmp_path / "d.csv"
    command = "design factorial -f size_bytes=1,1Ki -f op=send,recv --replications 5 --blocks 2".split()
    assert main([*command, "-o", str(path)]) == 0
    printed = output_of("design", "show", path)
    assert "40 rows of 4 treatments, each 5 times in each of 2 blocks" in printed
    assert "size_bytes (int): 2 levels, 1, 1024; 20 rows each" in printed
    assert "and 35 more rows" in printed
    assert json_of("design", "show", path, "--json")["factors"][2]["counts"] == [["recv", 20], ["send", 20]]


def test_a_mix_of_files_names_its_kinds(tmp_path: Path) -> None:
    for name, factor in (("a", "x=1,2,3"), ("b", "y=u,v")):
        assert main(["design", "factorial", "-f", factor, "-o", str(tmp_path / name)]) == 0
    parts = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["design", "mix", *parts, "--kinds", "one,two", "--blocks", "2", "-o", str(tmp_path / "c")]) == 0
    mixed = read_design(tmp_path / "c")
    assert mixed.columns == ("block", "kind", "x", "y")
    assert len(mixed) == 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["latin", "-f", "n=loguniform:1:1e6", "-f", "op=a,b", "-f", "m,k=1,2;3,4", "--count", "30"],
        ["factorial", "-f", 'text="$x_1$","a,b",c'],
        ["sample", "-f", "x=uniform:-5.0:5", "--count", "1"],
        ["factorial", "-f", "x=7"],
        ["p2p"],
        ["factorial", *[word for name in "abcdefghi" for word in ("-f", f"{name}=0,1")]],
        ["sample", "-f", "x=uniform:-1.0e99:1.0e99", "-f", "y=loguniform:1.0e-99:1.0e99", "--count", "50"],
    ],
)
def test_every_design_has_a_picture(tmp_path: Path, arguments: list[str]) -> None:
    assert main(["design", *arguments, "-o", str(tmp_path / "d.csv")]) == 0
    assert main(["design", "picture", str(tmp_path / "d.csv"), "-o", str(tmp_path / "d.png")]) == 0
    assert (tmp_path / "d.png").read_bytes().startswith(PNG)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "d.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("factorial", "missing option '--factor'"),
        ("factorial -f x=1,a", "put the numbers in quotes"),
        ("factorial -f x=1,,2", "levels are numbers and texts"),
        ("factorial -f x=1:4", "1:4 is no range; write uniform:1:4"),
        ("factorial -f x=10..20", "10..20 is no range"),
        ("factorial -f x=1KiB,2KiB", "1KiB is no number; write 64k (thousands) or 64Ki (times 1024), or quote it"),
        ("factorial -f x=1K,2K", "1K is no number"),
        ("factorial -f x=1 -f x=2", "--factor x is given twice"),
        ("factorial -f x=uniform:1:5", "x is a distribution"),
        ("factorial -f block=1,2 --blocks 2", "two columns are named block"),
        ("sample -f x=loguniform:1 --count 2", "write loguniform:LOW:HIGH"),
        ("sample -f x=loguniform:0:1 --count 2", "both bounds must be above 0"),
        ("sample -f m,n=1,2;3 --count 3", "each tuple has 2 values"),
        ("fractional -f a=0,1 -f b=0,1 -f c=0,1 -g c=a*z", "write NEW=FACTOR*FACTOR"),
        ("fractional -f a=0,1 -f b=0,1 -f c=0,1 -g c=a", "factors that always change together"),
        ("fractional -f a=0,1,2 -f b=0,1 --count 99", "give a number from 3"),
        ("fractional -f a=0,1 -f b=0,1 -f c=0,1 --count 2", "give a power of two above 3"),
        ("dgemm --content masked:54", "BITS from 0 to 53"),
        ("dgemm --content masked", "masked:BITS"),
        ("dgemm --content random,random", "content has 2 levels, 1 of them different; give each once"),
        ("dgemm --content constant:1e400", "content is 'constant:1e400'"),
        ("dgemm --warm 2", "its levels are 0 (a random place) and 1 (just used)"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_status_2(refusal_of, arguments, message):
    assert message in refusal_of("design", *arguments.split())


@pytest.mark.parametrize("law", ["log-product", "independent", "product", "fixed-k"])
def test_general_tables_hold_the_calls_by_which_two_are_compared(law: str, tmp_path) -> None:
    for bound, same in ((2048, {(1, 1, 1), (2048, 2048, 2048)}), (2000, {(1, 1, 1)})):
        file = tmp_path / f"{bound}.csv"
        assert main(["design", "dgemm", "--sizes", law, "--max-k", str(bound), "-o", str(file)]) == 0
        assert {(1, 1, 1), (2048, 2048, 2048)} & set(sizes(read_design(file))) == same
