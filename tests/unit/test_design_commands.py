"""`lepaute design` over any factors, from the command line: tables, show, pictures, and one line for each error."""

from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.measure.design import full_factorial, latin_hypercube, log_uniform, read_design, sample, uniform

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
