"""Command lines that show the usual uses of each command: at the end of its `--help`, and on its page of the site."""

from lepaute.simulate.apps import APPLICATIONS

#: Of commands, by their words.
EXAMPLES: dict[str, tuple[str, ...]] = {
    **{f"predict {name}": (f"lepaute predict {name} {entry.example} -p dahu",) for name, entry in APPLICATIONS.items()},
    **{
        f"verify command {name}": (
            f"lepaute verify command {name} {entry.example} -p here.yaml --time-pattern 'time: (\\S+) s' "
            "-- mpirun -np 2 PROGRAM",
        )
        for name, entry in APPLICATIONS.items()
        if name != "hpl"
    },
    "predict hpl": (
        "lepaute predict hpl -p dahu --n 20k --nb 128,192 --grid 8x8",
        "lepaute predict hpl -p dahu --n 20k --grid 1x1,1x2,2x2,4x4 --plot scaling.png",
        "lepaute predict hpl -p dahu --n 20k --grid 8x8 --against depth=0",
        "lepaute predict hpl -p platform.yaml --dat HPL.dat",
    ),
    "predict trace": (
        "lepaute predict trace run.parquet -p dahu --recorded-on mine.yaml",
        "lepaute predict trace run.parquet -p dahu --own-code 0.8..1.0 --mapping random",
    ),
    "emulate program": (
        "lepaute emulate -p dahu -np 64 --source FOLDER --fold 1M -- PROGRAM ARGS",
        "lepaute emulate -p dahu -np 1,2,4,8 --source FOLDER --plot scaling.png -- PROGRAM ARGS",
    ),
    "emulate hpl": ("lepaute emulate hpl -p dahu --n 20k --nb 128 --grid 8x8",),
    "emulate compilers": ("lepaute emulate compilers",),
    "verify hpl": (
        "lepaute verify hpl -p platform.yaml --n 4000,8000 --grid 1x2",
        "lepaute verify hpl -p two.yaml --n 20k --grid 8x8 --nodes 'node[1-2]'",
        "lepaute verify hpl -p platform.yaml --results HPL.out",
    ),
    "study whatif": ("lepaute study whatif STUDY.yaml -o results",),
    "study tune": (
        "lepaute study tune STUDY.yaml",
        "lepaute study tune STUDY.yaml --resume --scheduler slurm --workers 64",
    ),
    "study sensitivity": ("lepaute study sensitivity STUDY.yaml",),
    "study capacity": ("lepaute study capacity STUDY.yaml",),
    "study ready": (
        "lepaute study ready",
        "lepaute study ready nb-and-grid -p dahu --n 20k --grid 8x8",
        "lepaute study ready nb-and-grid -p dahu --print",
    ),
    "study check": ("lepaute study check STUDY.yaml",),
    "study schema": ("lepaute study schema",),
    "platform list": ("lepaute platform list",),
    "platform show": ("lepaute platform show dahu",),
    "platform check": ("lepaute platform check platform.yaml",),
    "platform export": ("lepaute platform export dahu -o dahu.xml",),
    "platform import": ("lepaute platform import cluster.xml -o cluster.yaml",),
    "platform new": (
        "lepaute platform new --nodes 16 --cores 2x24 --dgemm 45G --link 100Gb --memory 192G -o mine.yaml",
    ),
    "platform messages": ("lepaute platform messages mine.yaml --between osu_latency.txt -o mine-with-messages.yaml",),
    "platform synthesize": ("lepaute platform synthesize --nodes 256 --like dahu --spatial 2x -o big.yaml",),
    "platform combine": ("lepaute platform combine new.yaml old.yaml --nodes 4,4 -o mixed.yaml",),
    "platform population": (
        "lepaute platform population coefficients.csv --of platform.yaml -o population.yaml --plot population.png",
    ),
    "calibrate": (
        "lepaute calibrate -o platform.yaml",
        "lepaute calibrate -o two.yaml --nodes 'node[1-2]'",
        "lepaute calibrate -o eight.yaml --scheduler slurm --count 8 --walltime 1:00:00",
    ),
    "fit": ("lepaute fit calibration.zip -o platform.yaml --report report.html",),
    "compare": (
        "lepaute compare openmpi mpich --ops bcast,allreduce --sizes 1:1M --precision 2% --budget 5min",
        "lepaute compare old=/opt/openmpi-4 new=module:openmpi/5 --np 16 -o versions.zip",
    ),
    "clocks": (
        "lepaute clocks -o clocks.zip --plot clocks.png",
        "lepaute clocks mpich --np 8 --nodes 'node[1-4]' --ranks-per-node 2",
        "lepaute clocks --simulate 64,1 --report clocks.html",
    ),
    "watch run": ("lepaute watch run --store STORE --dry-run",),
    "watch ingest": (
        "lepaute watch ingest night-*.zip --store STORE --cluster dahu",
        "lepaute watch ingest values.csv --format csv --mapping mapping.yaml --store STORE",
    ),
    "watch test": (
        "lepaute watch test rates.csv",
        "lepaute watch test --store STORE",
        "lepaute watch test --store STORE --node 'dahu-[13-16]' --since 2020-11-01 --factor dgemm_rate_flops",
    ),
    "watch replay": ("lepaute watch replay --store STORE --since 2020-11-01 --until 2020-11-30",),
    "watch cost": (
        "lepaute watch cost dahu-13 --store STORE -p dahu --n 100k --grid 16x16",
        "lepaute watch cost 13 --since 2020-11-06 -p dahu --n 100k --grid 16x16",
    ),
    "watch site": ("lepaute watch site --store STORE -o watch-site",),
    "watch alert": (
        "lepaute watch alert --store STORE --notify jsons://host/hook",
        "lepaute watch alert --store STORE --prometheus lepaute.prom",
    ),
    "watch health": ("lepaute watch health 'n[1-16]' --store STORE",),
    "watch events": ("lepaute watch events list --store STORE", "lepaute watch events propose --store STORE"),
    "watch events list": ("lepaute watch events list --store STORE --history",),
    "watch events add": (
        "lepaute watch events add --date 2020-11-06 --cluster dahu --node 13/14 --reason 'new fans' --store STORE",
        "lepaute watch events add --date 2020-12-04 --node 29/30 --outlier 1965756 --reason 'power drop' --store STORE",
    ),
    "watch events withdraw": ("lepaute watch events withdraw 3f2a --reason 'wrong node' --store STORE",),
    "watch events import": ("lepaute watch events import --events events.csv --inventory inventory.csv --store STORE",),
    "watch events export": ("lepaute watch events export --events events.csv --store STORE",),
    "watch events propose": ("lepaute watch events propose --store STORE --since 2020-11-01",),
    "watch events accept": ("lepaute watch events accept 3f2a --reason 'new BIOS' --store STORE",),
    "watch events effect": ("lepaute watch events effect 2020-11-06 --node 'dahu-[13-14]' --store STORE",),
    "segment": (
        "lepaute segment osu_latency.txt --plot protocols.png",
        "lepaute segment mine.csv --unit us --where operation=send",
    ),
    "why": ("lepaute why run.parquet --usual usual/*.parquet --report why.html",),
    "record": ("lepaute record -o trace.parquet -- mpirun -np 2 PROGRAM",),
    "learn": (
        "lepaute learn r4.parquet r8.parquet r16.parquet -o solver.py",
        "lepaute learn a.parquet b.parquet -o solver.py --parameter n=512,1024 --explain",
    ),
    "trace show": ("lepaute trace show trace.parquet",),
    "trace gantt": ("lepaute trace gantt trace.parquet -o gantt.png --ranks 0-3",),
    "trace convert": (
        "lepaute trace convert smpi_simgrid.txt -o trace.parquet --flop-rate 1e9",
        "lepaute trace convert smpi.trace -o trace.parquet",
    ),
    "trace perfetto": ("lepaute trace perfetto trace.parquet -o trace.json.gz",),
    "trace otf2": ("lepaute trace otf2 trace.parquet -o trace-otf2",),
    "trace breakdown": ("lepaute trace breakdown trace.parquet --report trace.html",),
    "trace analyze": (
        "lepaute trace analyze trace.parquet --report trace.html",
        "lepaute trace analyze trace.parquet -p dahu",
    ),
    "trace compare": ("lepaute trace compare recorded.parquet simulated.parquet --report compared.html",),
    "design dgemm": (
        "lepaute design dgemm --products 40 --seed 7 -o dgemm.csv",
        "lepaute design dgemm --for hpl --n 20k --nb 128 --grid 8x8 --rows 200 -o dgemm.csv",
    ),
    "design factorial": (
        "lepaute design factorial -f size_bytes=1,1Ki,1Mi -f op=send,recv --replications 10 -o design.csv",
    ),
    "design fractional": (
        "lepaute design fractional -f a=0,1 -f b=0,1 -f c=0,1 -f d=0,1 -g d=a*b*c -o design.csv",
        "lepaute design fractional -f nodes=1,2,4 -f op=send,recv -f size_bytes=1,1Ki,1Mi --count 9 -o design.csv",
    ),
    "design latin": ("lepaute design latin -f n=loguniform:1:1e6 -f ratio=uniform:0.0:1 --count 100 -o design.csv",),
    "design sample": ("lepaute design sample -f n=loguniform:1:1e6 -f ratio=uniform:0.0:1 --count 100 -o design.csv",),
    "design mix": ("lepaute design mix memory.csv p2p.csv --kinds memory,network -o mixed.csv",),
    "design show": ("lepaute design show design.csv",),
    "design picture": ("lepaute design picture design.csv -o design.png",),
    "design p2p": ("lepaute design p2p --max-bytes 1M -o p2p.csv",),
    "design ring": ("lepaute design ring --ranks 4 --sizes 12 -o ring.csv",),
    "design hpl-step": ("lepaute design hpl-step --nb 128 --rows 48 -o steps.csv",),
    "design memory": ("lepaute design memory --max-bytes 16M --strides 1,8 -o memory.csv",),
    "design collective": ("lepaute design collective --operations bcast,allreduce --ranks 2,4 -o collective.csv",),
    "run": (
        "lepaute run EXPERIMENT.py -o ARCHIVE.zip",
        "lepaute run EXPERIMENT.py --nodes 'node[1-4]' --set replications=2",
        "lepaute run memory -o memory.zip",
    ),
    "archive show": ("lepaute archive show calibration.zip",),
    "archive verify": ("lepaute archive verify *.zip",),
    "archive extract": ("lepaute archive extract calibration.zip observations -o calibration",),
    "archive close": ("lepaute archive close calibration.work",),
    "archive diff": ("lepaute archive diff monday.zip tuesday.zip",),
    "doctor": ("lepaute doctor",),
    "examples": ("lepaute examples", "lepaute examples watch studies"),
    "completion": ("lepaute completion bash",),
}
