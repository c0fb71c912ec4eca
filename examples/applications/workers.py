"""A master that gives tasks to its workers, each the next one as soon as it has sent the last result back."""

import lepaute as lp


class Workers(lp.Application):
    """A master with workers.

    ranks : the master and its workers
    tasks : how many there are
    task_bytes : of a task on its way to a worker
    result_bytes : of a result on its way back
    """

    ranks: int = 8
    tasks: int = 100
    task_bytes: int = 10_000
    result_bytes: int = 1000
    unit = lp.Cost(1e-3, error=0.10, noise=0.05)  # seconds; a task has one to seven units

    def run(self, me):
        if me.rank == 0:
            for task in range(self.tasks):
                worker = task + 1
                if worker >= me.size:
                    worker = (yield me.receive(tag=1)).source
                yield me.send(worker, self.task_bytes, value=task)
            for _ in range(min(self.tasks, me.size - 1)):
                yield me.receive(tag=1)
            for worker in range(1, me.size):
                yield me.send(worker, 0)
        else:
            while (task := (yield me.receive(0)).value) is not None:
                yield me.compute(self.unit, 1 + task * 5 % 7)
                yield me.send(0, self.result_bytes, tag=1)
