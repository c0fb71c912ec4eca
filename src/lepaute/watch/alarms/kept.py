"""Judgements that are kept: what a store's values, changelog and settings say is worked out once, and read afterwards.

They lie in the cache, a file a table, by a digest of all that decides them: values, changelog, settings, and the
sources that judge. A cache that cannot be read or written costs time and changes no answer.
"""

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute import stats
from lepaute.errors import LepauteError
from lepaute.kit.builds import cache_folder, digests, drop_oldest, make_cache
from lepaute.kit.files import whole_file
from lepaute.watch import alarms, changelog, values
from lepaute.watch.alarms.procedure import AlarmSettings, Judged, judge_days

if TYPE_CHECKING:
    import pandas as pd

#: The oldest of more judgements are removed.
MOST_KEPT = 64
_TABLES = tuple(field.name for field in fields(Judged))


def judged_once(
    observed: "pd.DataFrame",
    log: changelog.Changelog,
    settings: AlarmSettings,
    progress: Callable[[float], None] | None = None,
) -> Judged:
    """What `judge_days` gives, kept for the next who asks; `judged_s` tells when it was worked out."""
    key = _key(observed, log, settings)
    with contextlib.suppress(LepauteError, OSError, ValueError):
        return _read(cache_folder() / "judgements", key)
    judged = judge_days(observed, log, settings, progress)
    with contextlib.suppress(LepauteError, OSError):
        _write(cache_folder() / "judgements", key, judged)
    return judged


def _key(observed: "pd.DataFrame", log: changelog.Changelog, settings: AlarmSettings) -> str:
    import pandas as pd

    digest = hashlib.sha256(repr((_sources(), log, settings, observed.dtypes.to_dict())).encode())
    digest.update(pd.util.hash_pandas_object(observed, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:32]


@cache
def _sources() -> str:
    """A digest of the modules that judge."""
    files = [Path(changelog.__file__), Path(values.__file__)]
    for package in (alarms, stats):
        files += Path(*package.__path__).rglob("*.py")
    return hashlib.sha256("\n".join(digests(files)).encode()).hexdigest()


def _read(folder: Path, key: str) -> Judged:
    """Raises OSError or ValueError where it is not there, or damaged."""
    import pandas as pd

    return Judged(**{name: pd.read_parquet(folder / f"{key}.{name}.parquet") for name in _TABLES})


def _write(folder: Path, key: str, judged: Judged) -> None:
    make_cache(folder)
    for name in _TABLES:
        with whole_file(folder / f"{key}.{name}.parquet") as temporary:
            getattr(judged, name).to_parquet(temporary)
    drop_oldest(folder, "*.parquet", MOST_KEPT * len(_TABLES))
