"""Alarms that belong to nothing that is known: what else was seen of the same machines, and of others, that day."""

import numpy
import pandas

from support.replay_events import DAY_S

#: Nodes with an alarm of the same factor and direction on one day, from which on the day is what they share.
SHARED_NODES = 4
#: Jobs after an alarm that tell whether its level stayed.
LATER_JOBS = 5
#: An alarm of the same factor of the same processor within this time is no second accident.
AGAIN_S = 30 * DAY_S
KINDS = ("shared day", "new level", "several witnesses", "again and again", "alone")
MACHINE = ["node", "cpu"]


def explained(alarms: pandas.DataFrame, values: pandas.DataFrame) -> pandas.DataFrame:
    """Each alarm (r = 1, p = 1) with the first of KINDS that fits it, and its size.

    shared day        : SHARED_NODES nodes have one of the same factor and direction on this day
    new level         : the median of the next LATER_JOBS jobs is off by at least half as much in the same direction
    several witnesses : the other processor of the node, or another factor of this one, has one in the same job
    again and again   : the same factor of the same processor has one within AGAIN_S
    alone             : one processor, one factor, one job
    """
    frame = alarms.merge(values[["node", "cpu", "job", "factor", "value"]], on=["node", "cpu", "job", "factor"])
    frame["usual"] = (frame["low"] + frame["high"]) / 2
    frame["size"] = frame["value"] / frame["usual"] - 1
    frame["day"] = numpy.floor(frame["started_s"] / DAY_S).astype(int)
    shared = frame.groupby(["day", "factor", "direction"])["node"].transform("nunique") >= SHARED_NODES
    witnesses = frame.groupby(["node", "job"])["factor"].transform("size") >= 2
    series = {
        key: part.sort_values("started_s")[["started_s", "value"]].to_numpy()
        for key, part in values.groupby([*MACHINE, "factor"])
    }
    lasting, again = [], []
    for row in frame.itertuples():
        later = series[row.node, row.cpu, row.factor]
        later = later[later[:, 0] > row.started_s][:LATER_JOBS, 1]
        stays = len(later) == LATER_JOBS and (numpy.median(later) / row.usual - 1) / row.size >= 0.5
        lasting.append(bool(stays))
        same = frame[(frame["node"] == row.node) & (frame["cpu"] == row.cpu) & (frame["factor"] == row.factor)]
        gaps = (same["started_s"] - row.started_s).abs()
        again.append(bool(((gaps > 0) & (gaps <= AGAIN_S)).any()))
    kinds = numpy.select([shared, lasting, witnesses, again], KINDS[:-1], KINDS[-1])
    return frame.assign(kind=kinds)


#: Looked at afterwards: nodes 1 to 4, 5 to 8 and so on, since the literature has 13 to 16 and 29 to 32 in a chassis.
CHASSIS = 4
NOTHING = 1e-4


def afterwards(frame: pandas.DataFrame) -> pandas.Series:
    """Of alarms that are alone, what was seen when they were looked at: "same chassis", "below 0.01 %", or ""."""
    chassis = (frame["node"].astype(int) - 1) // CHASSIS
    keys = [chassis, frame["date"].astype(str), frame["factor"], frame["direction"]]
    shared = frame.groupby(keys)["node"].transform("nunique") >= 2
    small = frame["size"].astype(float).abs() < NOTHING
    kinds = numpy.select([shared & ~small, small], ["same chassis", "below 0.01 %"], "")
    return pandas.Series(kinds, index=frame.index).where(frame["kind"] == "alone", "")
