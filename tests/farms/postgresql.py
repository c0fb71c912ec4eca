"""A real PostgreSQL server in a folder of its own, run by an unprivileged user.

    with postgresql_server(tmp_path) as server:
        with server.database() as url: ...

Nothing of an installed cluster is read or written; the server is gone afterwards.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from farms.daemons import free_ports, missing_programs, start_daemon
from support_limits import HANG_S, wait_until

#: It refuses to run as root; Debian's package makes this user.
_USER = "postgres"


@dataclass
class PostgresqlServer:
    port: int
    _emptied: list[str] = field(default_factory=list)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database, which is emptied at the end of the block and given again: that is cheaper."""
        import psycopg

        from lepaute.watch.store.postgresql import SCHEMA

        if self._emptied:
            name = self._emptied.pop()
        else:
            name = f"store_{uuid.uuid4().hex}"
            with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
                connection.execute(f"create database {name}")
        try:
            yield self.url(name)
        finally:
            with psycopg.connect(self.url(name), autocommit=True) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and pid <> pg_backend_pid()"
                )
                connection.execute(f"drop schema if exists {SCHEMA} cascade")
            self._emptied.append(name)

    def url(self, database: str) -> str:
        return f"postgresql://tester@127.0.0.1:{self.port}/{database}"

    def answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A server that answers. Skips the test where PostgreSQL or psycopg is not installed."""
    pytest.importorskip("psycopg")
    programs = _programs()
    if programs is None:
        pytest.skip("not installed: initdb, postgres (Debian: postgresql)")
    as_user: list[str] = []
    if os.geteuid() == 0:
        if missing := missing_programs(["setpriv"]):
            pytest.skip(f"not installed: {missing[0]} (Debian: util-linux), and PostgreSQL does not run as root")
        as_user = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--"]
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    try:
        if as_user:
            shutil.chown(folder, _USER, _USER)
        with _running(folder, programs, as_user) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder of initdb and postgres; Debian keeps each version's apart, and none of them on the PATH."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    having = [version for version in versions if (version / "initdb").exists() and (version / "postgres").exists()]
    return max(having, key=lambda each: int(each.parent.name), default=None)


@contextmanager
def _running(folder: Path, programs: Path, as_user: Sequence[str]) -> Iterator[PostgresqlServer]:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    data = folder / "data"
    subprocess.run(
        [*as_user, programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync"],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    (port,) = free_ports(1)
    options = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",  # the machine is not switched off in a test
        "max_connections": 30,
    }
    argv = [*as_user, str(programs / "postgres"), "-D", str(data)]
    argv += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    daemon = start_daemon(argv, folder / "log", environment)
    server = PostgresqlServer(port)
    try:
        wait_until(lambda: server.answers() or daemon.poll() is not None, "PostgreSQL")
        assert daemon.poll() is None, (folder / "log").read_text()
        yield server
    finally:
        daemon.send_signal(signal.SIGQUIT)  # at once, and its children with it
        daemon.wait(timeout=HANG_S)
