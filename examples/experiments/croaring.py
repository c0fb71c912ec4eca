"""The experiment of T. Cornebize's thesis, section 7.2: build CRoaring on two nodes and run one of its benchmarks."""

import lepaute as lp


class RealBitmaps(lp.Job):
    def setup(self):
        self.install("build-essential", "git", "cmake")
        url = self.parameters.get("url", "https://github.com/RoaringBitmap/CRoaring.git")
        self.clone(url, "CRoaring", "v0.2.66")
        self.build("CRoaring")

    def run(self):
        program = "./build/benchmarks/real_bitmaps_benchmark"
        for node, result in self.nodes.run(program, "benchmarks/realdata/census-income", folder="CRoaring").items():
            print(node, result.stdout)
