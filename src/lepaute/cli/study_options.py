"""The options that all commands of `lepaute study` which simulate share: where results go, and how they are made."""

from dataclasses import dataclass, field
from pathlib import Path

from lepaute.kit.options import option


@dataclass(frozen=True)
class StudyOptions:
    """How a study is run, as the command line says it; None where the study itself decides."""

    output: Path | None = field(
        default=None,
        metadata=option("folder of all results; STUDY.results unless given", also=("-o",), metavar="DIR"),
    )
    resume: bool = field(default=False, metadata=option("continue in the folder: only what is missing is simulated"))
    scheduler: str | None = field(
        default=None,
        metadata=option("threads, local (processes), slurm or oar; unless given, by how long it takes"),
    )
    workers: int | None = field(default=None, metadata=option("processes that simulate; a core each unless given"))
    runs: int | None = field(
        default=None, metadata=option("simulated runs of a configuration; the study's unless given")
    )
    seed: int | None = field(default=None, metadata=option("run i uses seed + i; the study's unless given"))

    def folder(self, study: str) -> Path:
        """Where the results of a study of this name go."""
        return Path(f"{study}.results") if self.output is None else self.output

    @property
    def that_repeat(self) -> dict[str, object]:
        """Those without which the command gives other results, by option."""
        return {"--runs": self.runs, "--seed": self.seed}
