"""Which conditions affect the duration of dgemm: content of the operands, warm-up, pinning, scheduling class, governor.

Conditions of a process (pinning, class, governor, warm-up calls) are levels of the design, one process per row,
in blocks; those of a call (content, warm or cold operands) vary within each process. `lepaute fit` tests them all.

Content slows a processor down when it runs at its power limit, which takes all cores and some seconds:
    --set cores=32 --set content_of=process --set calls=400
lets 32 cores compute on the same content for a whole row.
"""

import csv
from pathlib import Path

import lepaute as lp
from lepaute.measure.toolchain import C_FLAGS, probe_source

SOURCES = ("probe_dgemm.c", "content.c", "kernel_log.c", "probe_common.c")
HEADERS = ("content.h", "kernel_log.h", "probe_common.h")
GOVERNORS = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors")
POOL_BYTES = 200_000_000
START = """
# starts a probe on each of "$1" cores ($2: pinned or free) in a class of scheduling ($6), and waits for them:
pids=
core=0
while [ "$core" -lt "$1" ]; do
  [ "$2" = pinned ] && cpu=$core || cpu=any
  chrt "--$6" 0 ./probe-dgemm --design design.csv --out "raw$core.csv" --cpu "$cpu" --seed "$3$core" --max-bytes "$4" \
    --warmup-calls "$5" &
  pids="$pids $!"
  core=$((core + 1))
done
for pid in $pids; do wait "$pid"; done
"""


class DgemmConditions(lp.Job):
    def design(self):
        factors = {
            "pinning": ["pinned", "free"],
            "scheduling": ["other", "batch"],
            "warmup_calls": [0, 50],
        }
        here = GOVERNORS.read_text().split() if GOVERNORS.is_file() else []
        governors = self.parameters.get("governors", ",".join(sorted({"performance", "powersave"} & set(here))))
        if "," in str(governors):
            factors["governor"] = str(governors).split(",")
        if self.parameters.get("content_of") == "process":
            factors["content"] = self.contents()
        return lp.design.full_factorial(factors, blocks=int(self.parameters.get("blocks", 4)), seed=self.seed)

    def setup(self):
        self.install("gcc", "libc6-dev", "libopenblas-dev")
        for name in (*SOURCES, *HEADERS):
            self.nodes.write(name, (probe_source() / name).read_bytes())
        self.nodes.run("gcc", *C_FLAGS, *SOURCES, "-lopenblas", "-lm", "-o", "probe-dgemm")

    def run(self):
        cores = int(self.parameters.get("cores", 1))
        for row in self.rows():
            refused = self.set_conditions(governor=row["governor"]) if "governor" in row else ()
            seed = 1000 * self.seed + row["design_row"]
            self.nodes.write("design.csv", self.calls_of(row, seed).to_csv())
            words = (cores, row["pinning"], seed, POOL_BYTES, row["warmup_calls"], row["scheduling"])
            self.nodes.shell(START, *words, environment={"OPENBLAS_NUM_THREADS": "1"})
            for core in range(cores):
                for node, raw in self.nodes.read(f"raw{core}.csv").items():
                    if node not in refused:
                        self.keep_calls(node, row["design_row"], core, raw.decode())

    def contents(self):
        return str(self.parameters.get("contents", "random,constant,masked:40")).split(",")

    def calls_of(self, row, seed):
        """The calls of one process: one size, each content and operand state several times, in random order."""
        size = tuple(int(letter) for letter in str(self.parameters.get("size", "500,500,128")).split(","))
        return lp.design.content_design(
            seed,
            sizes=[size],
            contents=[row["content"]] if "content" in row else self.contents(),
            warm=[0, 1],
            replications=int(self.parameters.get("calls", 2)),
        )

    def keep_calls(self, node, process, core, text):
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        for position, call in enumerate(csv.DictReader(lines)):
            self.record(
                node=node,
                process=process,
                position=position,
                kernel=call["kernel"],
                m=int(call["m"]),
                n=int(call["n"]),
                k=int(call["k"]),
                content=call["content"],
                warm=int(call["warm"]),
                wanted_core=core,
                seen_on_cpu=int(call["cpu"]),
                duration_s=float(call["duration_s"]),
            )
