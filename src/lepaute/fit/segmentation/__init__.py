"""Piecewise affine fits with jumps: where to cut a range of sizes so that a line in each part fits best."""

from lepaute.fit.segmentation.points import Line
from lepaute.fit.segmentation.result import Partition, SegmentedLine
from lepaute.fit.segmentation.search import JointlySegmented, segment, segment_jointly

__all__ = ["JointlySegmented", "Line", "Partition", "SegmentedLine", "segment", "segment_jointly"]
