import lepaute


class First(lepaute.Job):
    def run(self):
        self.nodes.run(f"true {self.parameters.get('size', 2)} {self.options.seed}")


class Second(First):
    def run(self):
        self.nodes.run("false")
