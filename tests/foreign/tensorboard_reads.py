# SPDX-License-Identifier: Apache-2.0
# Takes: tensorboard numpy Pillow
"""TensorBoard's own reader reads what a run has written: the numbers of its steps, histograms of parameters, and the
numbers, texts, images and histograms that a script records, also where the job was started again. Arguments: the build tree.

Skips, with exit code 77, where the packages are not installed: pip install tensorboard, and start this with that Python.
"""
import io
import json
import logging
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import PIL.Image
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.util import tensor_util
except ImportError as missing:
    print(f"skipped: {missing}; pip install tensorboard numpy Pillow")
    sys.exit(77)

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
ALL = {"scalars": 0, "text": 0, "images": 0, "histograms": 0}  # no event is left out of what it keeps
logging.disable(logging.WARNING)  # it tells of each start that replaces steps of the one before


def trained(folder, *words, ranks=1):
    subprocess.run([BUILD / "orrery", "run", "-n", str(ranks), "--dir", folder, *words], check=True, capture_output=True)


class Read:
    """{tag: [(step, array)]} of each plugin of a run, as TensorBoard's pages are given them."""

    def __init__(self, folder):
        self.all = EventMultiplexer(tensor_size_guidance=ALL).AddRunsFromDirectory(str(folder)).Reload()
        self.runs = set(self.all.Runs())

    def __call__(self, plugin, run="."):
        return {tag: [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in self.all.Tensors(run, tag)]
                for tag in self.all.PluginRunToTagToContent(plugin).get(run, {})}


def lines_of(place):
    return (place / "metrics.jsonl").read_text().splitlines() if place.exists() else []


def numbers(place, before):
    """{name: [(step, value)]} of the other file, in single precision, behind the lines of earlier starts."""
    found = {}
    for line in map(json.loads, lines_of(place)[before:]):
        for name in line.keys() - {"step", "time"}:
            found.setdefault(name, {})[line["step"]] = float(numpy.float32(line[name]))
    return {name: sorted(values.items()) for name, values in found.items()}


def same_numbers(read, place, run=".", before=0):
    scalars = {tag: [(step, float(value)) for step, value in events] for tag, events in read("scalars", run).items()}
    wanted = numbers(place, before)
    assert scalars == wanted, (run, set(scalars) ^ set(wanted), [t for t in scalars if scalars[t] != wanted.get(t)])
    return scalars


def parameters(folder):
    trained(folder, "--observe", "tensorboard=histograms:5", SOURCE / "examples/gpt.lua", "steps=10", "layers=1", "eval=0", "sample=0")
    read = Read(folder)
    scalars, histograms, texts = same_numbers(read, folder), read("histograms"), read("text")
    assert len(histograms) > 10 and all([step for step, _ in rows] == [5, 10] for rows in histograms.values()), histograms.keys()
    for tag, rows in histograms.items():
        if not tag.startswith("grad "):  # of a parameter and of its gradient are as many numbers
            assert [r[:, 2].sum() for _, r in rows] == [r[:, 2].sum() for _, r in histograms[f"grad {tag}"]], tag
    assert "config/layers | 1\n" in texts["configuration"][-1][1].item().decode()
    print(f"read {len(scalars)} numbers of 10 steps, {len(histograms)} histograms and the configuration")


def pixels(event):
    """The image of one event, [height, width] or [height, width, channels]."""
    width, height, *pictures = event
    [picture] = map(PIL.Image.open, map(io.BytesIO, pictures))
    assert (picture.width, picture.height) == (int(width), int(height))
    return numpy.asarray(picture)


def computed(shape, f):
    return f(*numpy.indices(shape))


def tiles():
    """Eight in a row; what is left of the last row is black."""
    sheet = numpy.zeros((4, 24), "u1")
    for n in range(10):
        top, left = n // 8 * 2, n % 8 * 3
        sheet[top:top + 2, left:left + 3] = computed((2, 3), lambda y, x: n * 20 + y * 3 + x)
    return sheet


IMAGES = {"rgb": numpy.rint(computed((4, 6, 3), lambda y, x, c: (c * 24 + y * 6 + x) / 71 * 255)),
          "rgba": computed((2, 3, 4), lambda y, x, c: c * 60 + y * 10 + x), "tiles": tiles()}
index = numpy.arange(500)
HISTOGRAMS = {"spread": (numpy.sin(index) * index).astype("f4"), "constant": numpy.full(7, 2.5),
              "whole": numpy.outer(numpy.arange(4), numpy.arange(6)).ravel()}


def same_histogram(rows, values):
    counts, edges = numpy.histogram(values.astype("f8"), 30, (values.min(), values.max()))
    if values.min() == values.max():  # of which NumPy makes room on both sides
        counts, edges = numpy.array(29 * [0] + [len(values)]), numpy.full(31, values[0])
    assert numpy.allclose(rows[:, 0], edges[:-1]) and numpy.allclose(rows[:, 1], edges[1:]), (rows, edges)
    assert rows[:, 2].tolist() == counts.tolist(), (rows[:, 2], counts)


def of_a_script(folder, last, ranks):
    """What tensorboard_reads.lua has recorded in the steps up to `last`."""
    before = {run: len(lines_of(folder / run)) for run in (".", "G", "D")}
    trained(folder, HERE / "tensorboard_reads.lua", f"last={last}", ranks=ranks)
    read, steps = Read(folder), range(1, last + 1)
    assert read.runs == before.keys(), read.runs
    own, g, d = (same_numbers(read, folder / run, run, lines) for run, lines in before.items())
    assert own == {"reward": [(s, s * 1.5) for s in steps], "many/a": [(s, s) for s in steps], "many/b": [(s, -s) for s in steps]}, own
    assert d["penalty"] == [(10 * s, s / 8) for s in steps], d["penalty"]
    assert [step for step, _ in g["eval/loss"]] == [last] and len(g["twice"]) == last
    said = {tag: [(step, value.item().decode()) for step, value in events] for tag, events in read("text").items()}
    assert said == {"said": [(s, f"step {s}: **größe** | 精度\n\nnext") for s in steps], "rough": [(last, "a\ufffdb")]}, said
    images = read("images")
    assert images.keys() == IMAGES.keys(), images.keys()
    for tag, wanted in IMAGES.items():
        [(step, image)] = images[tag]
        assert step == last and numpy.array_equal(pixels(image), wanted), (tag, pixels(image), wanted)
    grey = read("images", "D")["grey"]
    assert [step for step, _ in grey] == list(steps)
    for step, image in grey:
        assert numpy.array_equal(pixels(image), computed((3, 5), lambda y, x: y * 50 + x * 3 + step)), step
    histograms = read("histograms")
    assert histograms.keys() == HISTOGRAMS.keys(), histograms.keys()
    for tag, values in HISTOGRAMS.items():
        [(step, rows)] = histograms[tag]
        assert step == last
        same_histogram(rows, values)
    return f"{len(own) + len(g) + len(d)} numbers, {len(said)} texts, {len(images) + 1} images, {len(histograms)} histograms"


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    parameters(root / "gpt")
    for ranks in (1, 3):
        place = root / f"script{ranks}"
        told = of_a_script(place, 6, ranks)
        assert told == of_a_script(place, 4, ranks), "a second start replaces the first"
        print(f"read of a script on {ranks} ranks, twice: {told}, and the runs G and D")
