# SPDX-License-Identifier: Apache-2.0
"""The cases of edges.py of layers: norms, losses, attention, convolutions and pools."""
import itertools
import math

from edge_cases import NAN, INF, ROWS, STRANGE, table, vector, waves
from edges import REALS, Case, ulp


def norms():
    for dtype, eps in itertools.product(REALS, (1e-5, 1e-12)):
        w, b = vector(dtype, [1, 0.5, -1, 2, 0]), vector(dtype, [0, 0.1, -0.25, 1, 3])
        for name, x in {"plain": table(dtype, [row for row in ROWS if row[0] > 1e-3]),
                        "strange": table(dtype, STRANGE)}.items():
            by = ["x", "w", "b"] if name == "plain" else []
            yield Case(f"layernorm {name} {dtype} {eps}", f"orrery.layernorm(x, w, b, {eps})",
                       f"F.layer_norm(x, (5,), w, b, {eps})",
                       {"x": x, "w": w, "b": b}, by, ulps=1024, sums=True)
            yield Case(f"rmsnorm {name} {dtype} {eps}", f"orrery.rmsnorm(x, w, {eps})",
                       f"F.rms_norm(x, (5,), w, {eps})",
                       {"x": x, "w": w}, by[:2], ulps=1024, sums=True)
        one = (dtype, (3, 1), vector(dtype, [2, 0, -1e4])[2])
        yield Case(f"layernorm of 1 {dtype} {eps}", f"orrery.layernorm(x, w, b, {eps})",
                   f"F.layer_norm(x, (1,), w, b, {eps})",
                   {"x": one, "w": vector(dtype, [1.5]), "b": vector(dtype, [0.25])}, ["x", "b"])


def losses():
    """The logarithm of the sum of powers is rounded to f32 before a logit is taken from it: hence `absolute`."""
    for dtype in REALS:
        kind = "f64" if dtype == "f64" else "f32"
        absolute = 4 * ulp(100, kind)
        x, labels = table(dtype, ROWS[:7]), ("i64", (7,), [0, 4, 2, 3, 1, 1, 2])
        def loss(name, lua, torch, given, by=("x",)):
            return Case(f"cross_entropy {name} {dtype}", f"nn.cross_entropy(x, y{lua}):reshape(1)",
                        f"({torch}).reshape(1)",
                        given, by, ulps=16, absolute=absolute)
        yield loss("plain", "", f"F.cross_entropy(x.to({kind}), y)", {"x": x, "y": labels})
        some = ("i64", (7,), [-100, 4, -100, 3, 1, 1, -100])
        yield loss("ignored", ", { ignore = -100 }", f"F.cross_entropy(x.to({kind}), y)", {"x": x, "y": some})
        yield loss("all ignored", ", { ignore = -100 }", f"F.cross_entropy(x.to({kind}), y)",
                   {"x": x, "y": ("i64", (7,), [-100] * 7)}, ())
        w = (kind, (7,), [0, 1, 2, 0.5, 1, 1, 0])
        each = "F.cross_entropy(x.to(w.dtype), y, reduction='none') * w"
        yield loss("weighted", ", { weights = w }", f"({each}).sum() / w.sum()", {"x": x, "y": labels, "w": w})
        for row, label in itertools.product(STRANGE, (0, 1)):
            yield loss(f"{row} {label}", "", f"F.cross_entropy(x.to({kind}), y)",
                       {"x": table(dtype, [row]), "y": ("i64", (1,), [label])})
        for label in (-1, 5):
            yield loss(f"label {label}", "", "raise_error()", {"x": table(dtype, ROWS[:1]),
                                                               "y": ("i64", (1,), [label])}, ())


def attention():
    """1 head, 1 key, depths that are no multiple of 8, other lengths of keys than of queries, rows that see nothing."""
    shapes = [(1, 1, 1, 1, 1), (1, 1, 5, 1, 3), (2, 2, 3, 7, 5), (1, 3, 17, 33, 12), (1, 1, 1, 40, 7), (1, 2, 40, 3, 9),
              (1, 1, 70, 130, 20)]
    for dtype, (b, h, t, s, d) in itertools.product(REALS, shapes):
        given = {"q": waves(dtype, (b, t, h * d), 1), "k": waves(dtype, (b, s, h * d), 2),
                 "v": waves(dtype, (b, s, h * d), 3)}
        mask = ("bool", (t, s), [int((i // s + i) % 3 > 0 and i // s != 1) for i in range(t * s)])
        seen = f"torch.ones({t}, {s}).tril({s - t}).bool()"
        ways = {"": ("", given), ", causal = true": (f".masked_fill(~{seen}, -math.inf)", given),
                ", scale = 0": (" * 0", given),
                ", mask = m": (".masked_fill(~m, -math.inf)", given | {"m": mask})}
        for lua, (torch, inputs) in ways.items():
            yield attended(f"{dtype} {(b, h, t, s, d)}{lua}", (b, h, t, d), lua, torch, inputs)
        for operand in "qkv":
            kind, dims, values = given[operand]
            hurt = given | {operand: (kind, dims, [*values[:len(values) // 2], NAN, *values[len(values) // 2 + 1:]])}
            yield attended(f"{dtype} {(b, h, t, s, d)} NaN in {operand}", (b, h, t, d), "", "", hurt)


def attended(name, dims, lua, torch, given):
    b, h, t, d = dims
    lines = (f"q, k, v = (x.reshape({b}, -1, {h}, {d}).transpose(1, 2) for x in (q, k, v))\n"
             f"s = (q @ k.mT * {d} ** -0.5){torch}\n"
             "w = torch.where((s == -math.inf).all(-1, keepdim=True), 0, s).softmax(-1) * (s > -math.inf).any(-1, keepdim=True)\n"
             if "mask" in torch else f"q, k, v = (x.reshape({b}, -1, {h}, {d}).transpose(1, 2) for x in (q, k, v))\n"
             f"w = ((q @ k.mT * {d} ** -0.5){torch}).softmax(-1)\n")
    return Case(f"attention {name}", f"nn.attention(q, k, v, {{ heads = {h}{lua} }})",
                f"{lines}(w @ v).transpose(1, 2).reshape({b}, {t}, {h * d})", given, "qkv", ulps=256, sums=True,
                absolute=64 * ulp(1, given["q"][0]))


CONVOLUTIONS = [((1, 1, 1), (1, 1, 1), {}), ((2, 3, 5), (4, 3, 5), {}), ((1, 2, 3), (2, 2, 3), {"padding": 4}),
                ((2, 1, 7), (3, 1, 2), {"dilation": 5}), ((2, 4, 6), (4, 1, 3), {"groups": 4, "padding": 1}),
                ((2, 4, 6), (6, 2, 3), {"groups": 2, "stride": 4}), ((1, 2, 5), (1, 2, 1), {"stride": 7}),
                ((2, 2, 4), (2, 2, 3), {"padding": "same", "dilation": 3}), ((1, 17, 4), (17, 17, 3), {"padding": 1}),
                ((1, 17, 4), (17, 17, 3), {"padding": 5})]


def convolutions():
    """Kernels as large as their input, padding larger than a kernel, strides larger than the input."""
    for dtype, (x, w, o), first in itertools.product(REALS, CONVOLUTIONS, (0.5, NAN, INF)):
        kind, dims, values = waves(dtype, x, 1)
        given = {"x": (kind, dims, [first, *values[1:]]), "w": waves(dtype, w, 2), "b": waves(dtype, w[:1], 3)}
        options = "".join(f"{k} = {v!r}, " for k, v in o.items())
        yield Case(f"conv1d {dtype} {x} {w} {o} {first}", "layer(x)",
                   f"F.conv1d(x, w, b{''.join(f', {k}={v!r}' for k, v in o.items())})",
                   given, ["x", "w", "b"], ulps=64, sums=True, states={"w": "layer.weight", "b": "layer.bias"},
                   before=f"local layer = nn.conv1d({x[1]}, {w[0]}, {w[2]}, {{ {options}dtype = '{dtype}' }})")


def pools():
    large = {"f16": 3e4, "bf16": 1e37, "f32": 1e37, "f64": 1e300}
    for dtype, (x, size, o) in itertools.product(REALS, [((1, 1, 12), 3, {}), ((1, 2, 6), 2, {"stride": 1}),
                                                         ((2, 1, 6), 6, {}),
                                                         ((1, 1, 12), 3, {"padding": 1}),
                                                         ((1, 1, 12), 1, {"stride": 5})]):
        ties, wild = [float(i % 3) for i in range(12)], [1, 2, INF, -INF, 3, 3, -INF, -INF, 1e4, 1e4, 3e4, 1]
        for values in (ties, wild, [large[dtype]] * 12, waves(dtype, (12,))[2]):
            given, by = {"x": (dtype, x, vector(dtype, values)[2])}, ["x"]
            options, words = "".join(f"{k} = {v}, " for k, v in o.items()), "".join(f", {k}={v}" for k, v in o.items())
            for lua, torch in {f"nn.max_pool1d({size}, {{ {options} }})(x)": f"F.max_pool1d(x, {size}{words})",
                               f"nn.avg_pool1d({size}, {{ {options} }})(x)": f"F.avg_pool1d(x, {size}{words})",
                               f"nn.avg_pool1d({size}, {{ {options}count_include_pad = false }})(x)":
                               f"F.avg_pool1d(x, {size}{words}, count_include_pad=False)",
                               "nn.adaptive_avg_pool1d(5)(x)": "F.adaptive_avg_pool1d(x, 5)"}.items():
                yield Case(f"{dtype} {x} {lua} of {values}", lua, torch, given, by, ulps=16, sums=True)


GROUPS = [norms, losses, attention, convolutions, pools]
