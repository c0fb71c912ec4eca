"""Which conditions change what dgemm takes: content of the operands, warm-up, pinning, scheduling class, governor.

Conditions of a process (pinning, class, governor, warm-up calls) are levels of the design, one process a row, in
blocks; those of a call (content, operands just used or not) vary inside each process. `lepaute fit` tests them all.
"""

import csv
from pathlib import Path

import lepaute as lp
from lepaute.measure.probe_source import C_FLAGS, probe_source

SOURCES = ("probe_dgemm.c", "content.c", "kernel_log.c", "probe_common.c")
HEADERS = ("content.h", "kernel_log.h", "probe_common.h")
GOVERNORS = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors")
POOL_BYTES = 200_000_000


class DgemmConditions(lp.Job):
    def design(self):
        factors = {
            "pinning": ["pinned", "free"],
            "scheduling": ["other", "batch"],
            "warmup_calls": [0, 50],
        }
        here = GOVERNORS.read_text().split() if GOVERNORS.is_file() else []
        governors = self.parameters.get("governors", ",".join({"performance", "powersave"} & set(here)))
        if "," in str(governors):
            factors["governor"] = str(governors).split(",")
        return lp.design.full_factorial(factors, blocks=int(self.parameters.get("blocks", 4)), seed=self.seed)

    def setup(self):
        self.install("gcc", "libc6-dev", "libopenblas-dev")
        for name in (*SOURCES, *HEADERS):
            self.nodes.write(name, (probe_source() / name).read_bytes())
        self.nodes.run("gcc", *C_FLAGS, *SOURCES, "-lopenblas", "-lm", "-o", "probe-dgemm")

    def run(self):
        contents = str(self.parameters.get("contents", "random,constant,masked:40")).split(",")
        size = tuple(int(letter) for letter in str(self.parameters.get("size", "500,500,128")).split(","))
        calls = int(self.parameters.get("calls", 2))
        for row in self.rows():
            wanted = {"scheduling": {"class": row["scheduling"]}}
            if "governor" in row:
                wanted["governor"] = row["governor"]
            refused = self.set_conditions(**wanted)
            seed = 1000 * self.seed + row["design_row"]
            design = lp.design.content_design(seed, sizes=[size], contents=contents, warm=[0, 1], replications=calls)
            self.nodes.write("design.csv", design.to_csv())
            words = ["--design", "design.csv", "--out", "raw.csv", "--seed", seed, "--max-bytes", POOL_BYTES]
            words += ["--cpu", 0 if row["pinning"] == "pinned" else "any", "--warmup-calls", row["warmup_calls"]]
            self.nodes.run("./probe-dgemm", *words, environment={"OPENBLAS_NUM_THREADS": "1"})
            for node, raw in self.nodes.read("raw.csv").items():
                if node not in refused:
                    self.keep_calls(node, row["design_row"], raw.decode())

    def keep_calls(self, node, process, text):
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
                seen_on_cpu=int(call["cpu"]),
                duration_s=float(call["duration_s"]),
            )
