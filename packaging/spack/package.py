# Recipe for Spack: packages/py_lepaute/package.py of a repository of packages. At a release: the version with the sha256
# that scripts/release.sh prints. For Spack 1.0 and newer; its repository must have Typer 0.29, of which it had 0.20 when this
# was written.
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyLepaute(PythonPackage):
    """Measures a computer, fits models and predicts how long an MPI application will run on it, with intervals."""

    pypi = "lepaute/lepaute-0.2.0.tar.gz"
    license("MIT")

    version("0.2.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")  # of the sdist

    variant("fit", default=True, description="calibrate, run, fit, clocks")
    variant("report", default=True, description="pictures and pages")
    variant("hpl", default=True, description="MPI and BLAS, with which the real HPL is built and measured")

    depends_on("cxx", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-nanobind@2.4:", type="build")
    depends_on("py-scikit-build-core@0.10:", type="build")

    depends_on("python@3.11:", type=("build", "run"))
    for name, lowest in (
        ("annotated-types", "0.6"),
        ("clustershell", "1.9"),
        ("jinja2", "3.1"),
        ("numpy", "1.26"),
        ("pandas", "3.0"),
        ("psutil", "5.9"),
        ("pydantic", "2.6"),
        ("pyyaml", "6.0.1"),
        ("rich", "13.8"),
        ("threadpoolctl", "3.2"),
        ("typer", "0.29"),
    ):
        depends_on(f"py-{name}@{lowest}:", type=("build", "run"))
    depends_on("py-pyarrow@19:", type="run", when="+fit")
    depends_on("arrow +compute +dataset +parquet +snappy +zstd", when="+fit")
    depends_on("py-scipy@1.12:", type="run", when="+fit")
    depends_on("py-matplotlib@3.8:", type="run", when="+report")
    depends_on("mpi", type="run", when="+hpl")
    depends_on("openblas", type="run", when="+hpl")
