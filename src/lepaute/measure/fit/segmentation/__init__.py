"""Piecewise affine fits with jumps: where to cut a range of sizes so that a line in each part fits best."""

from lepaute.measure.fit.segmentation.points import Line
from lepaute.measure.fit.segmentation.result import Partition, SegmentedLine
from lepaute.measure.fit.segmentation.search import JointlySegmented, segment, segment_jointly

__all__ = ["JointlySegmented", "Line", "Partition", "SegmentedLine", "segment", "segment_jointly"]
