"""Prints the scalars of a folder of TensorBoard events as JSON: {tag: [[step, value], ...]}.

Every record is read twice: by the accumulator that TensorBoard shows, and by the plain loader, which
checks each checksum. A value that JSON has no number for is its name.
"""

import json
import math
import pathlib
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing import event_file_loader


def number(value):
    return value if math.isfinite(value) else str(value)


def main():
    folder = pathlib.Path(sys.argv[1])
    accumulator = event_accumulator.EventAccumulator(
        str(folder), size_guidance={event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0})
    accumulator.Reload()
    scalars = {tag: [[point.step, number(point.value)] for point in accumulator.Scalars(tag)]
               for tag in accumulator.Tags()["scalars"]}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        events = list(event_file_loader.LegacyEventFileLoader(str(path)).Load())
        assert events[0].file_version == "brain.Event:2", events[0]
        assert all(event.wall_time > 1.6e9 for event in events)
    print(json.dumps(scalars))


main()
