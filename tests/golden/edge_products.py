# SPDX-License-Identifier: Apache-2.0
"""The cases of edges.py of products, windows, recurrences and what is made of them."""

from edge_cases import INF, NAN, vector, waves
from edges import REALS, Case


def rounding(name, lua, torch, given, wanted=None, **more):
    return Case(name, lua, torch, given, given if wanted is None else wanted, ulps=64, sums=True, **more)


def products():
    """Few and many summands; infinities and NaN times 0; sums of products that a dtype does not hold."""
    for dtype in REALS:
        for m, k, n in [(1, 1, 1), (1, 7, 1), (3, 1, 5), (17, 13, 11), (1, 300, 1), (2, 257, 3), (64, 65, 33),
                        (1, 1000, 40)]:
            name = f"{dtype} {(m, k, n)}"
            yield rounding(f"matmul {name}", "a:matmul(b)", "a @ b", {"a": waves(dtype, (m, k), 1),
                                                                      "b": waves(dtype, (k, n), 2)})
            yield rounding(f"matmul transposed {name}", "a:matmul(b, { transpose_a = true, transpose_b = true })",
                           "a.T @ b.T",
                           {"a": waves(dtype, (k, m), 1), "b": waves(dtype, (n, k), 2)})
        rest = waves(dtype, (15,))[2]
        for bad in (NAN, INF):
            given = {"a": (dtype, (3, 4), [bad, 0.0, 0.0, 0.0, *rest[:8]]), "b": (dtype, (4, 5), [*[0.0] * 5, *rest])}
            yield rounding(f"matmul of {bad} {dtype}", "a:matmul(b)", "a @ b", given)
        large = vector(dtype, [6e4 if dtype == "f16" else 1e30] * 6)[2]
        yield rounding(f"matmul of large ones {dtype}", "x:matmul(x, { transpose_b = true })", "x @ x.T",
                       {"x": (dtype, (2, 3), large)})


EQUATIONS = {"bij->bji": None, "bij->b": None, "bij->": None, "bij,bkj->bik": (2, 5, 4), "bij,bij->bj": (2, 3, 4),
             "bij,j->bi": (4,)}


def sums_of_products():
    for dtype in REALS:
        for equation, shape in EQUATIONS.items():
            given = {"x": waves(dtype, (2, 3, 4), 1)} | ({"y": waves(dtype, shape, 2)} if shape else {})
            call = f"einsum('{equation}', {', '.join(given)})"
            yield rounding(f"{call} {dtype}", f"orrery.{call}", f"torch.{call}", given)


def windows():
    """Windows that overlap, that leave elements out, as long as the dim; and their sums."""
    for dtype in REALS:
        for length, size, stride, dilation in [(7, 3, 1, 1), (7, 3, 2, 2), (5, 5, 1, 1), (5, 1, 3, 1), (9, 4, 4, 1),
                                               (9, 2, 1, 8)]:
            reach = (size - 1) * dilation + 1
            count, how = (length - reach) // stride + 1, f"{{ stride = {stride}, dilation = {dilation} }}"
            name = f"{dtype} {(length, size, stride, dilation)}"
            each = f"x.narrow(1, i * {stride}, {reach})[:, ::{dilation}] for i in range({count})"
            yield rounding(f"windows {name}", f"x:windows({size}, {how})", f"torch.stack([{each}], 1)",
                           {"x": waves(dtype, (2, length, 3))})
            places = [i * stride + k * dilation for i in range(count) for k in range(size)]
            fold = f"torch.zeros_like(y.reshape(2, -1, 3)[:, :1]).repeat(1, {length}, 1).index_add(1, torch.tensor({places}), y.reshape(2, -1, 3))"
            yield rounding(f"fold {name}", f"y:fold({length}, {how})", fold, {"y": waves(dtype, (2, count, size, 3))})


def listed(value):
    return "{ " + ", ".join(map(str, value)) + " }" if isinstance(value, tuple) else repr(value)


def layer(kind, dtype, x, w, outputs, options):
    """A convolution of x with weights w, and its counterpart in torch.nn.functional."""
    given = {"x": waves(dtype, x, 1), "w": waves(dtype, w, 2), "b": waves(dtype, (outputs,), 3)}
    lua = "".join(f"{k} = {listed(v)}, " for k, v in options.items())
    before = f"local layer = nn.{kind}({x[1]}, {outputs}, {listed(w[2:])}, {{ {lua}dtype = '{dtype}' }})"
    words = "".join(f", {k}={v!r}" for k, v in options.items())
    return rounding(f"{kind} {dtype} {x} {w} {options}", "layer(x)", f"F.{kind}(x, w, b{words})", given, before=before,
                    states={"w": "layer.weight", "b": "layer.bias"})


def convolutions():
    for dtype in REALS:
        for x, w, o in [((1, 1, 1), (1, 1, 1), {}), ((2, 3, 4), (3, 2, 5), {"stride": 3}),
                        ((1, 2, 3), (2, 2, 2), {"dilation": 4}),
                        ((1, 2, 3), (2, 2, 3), {"padding": 1, "stride": 2, "output_padding": 1})]:
            yield layer("conv_transpose1d", dtype, x, w, w[1], o)
        for x, w, o in [((1, 1, 3, 3), (1, 1, 3, 3), {}), ((2, 2, 3, 5), (2, 2, 1, 2), {"stride": (2, 3)}),
                        ((1, 2, 2, 2), (3, 2, 5, 5), {"padding": (2, 3)}),
                        ((1, 4, 4, 4), (4, 1, 2, 2), {"groups": 4, "dilation": (3, 1)})]:
            yield layer("conv2d", dtype, x, w, w[0], o)


def bags():
    """Of repeated ids, of nothing but padding."""
    for dtype in REALS:
        given = {"i": ("i64", (3, 4), [1, 0, 2, 0, 0, 0, 0, 0, 3, 3, 1, 2]), "w": waves(dtype, (4, 2), 5)}
        for mode, padded in [(m, p) for m in ("mean", "sum", "max") for p in (False, True)]:
            lua, torch = (", padding = 0", ", padding_idx=0") if padded else ("", "")
            yield rounding(f"embedding_bag {mode} {padded} {dtype}", "layer(i)",
                           f"F.embedding_bag(i, w, mode='{mode}'{torch})", given,
                           ["w"] if mode != "max" else [], states={"w": "layer.weight"},
                           before=f"local layer = nn.embedding_bag(4, 2, {{ mode = '{mode}', dtype = '{dtype}'{lua} }})")


def recurrences():
    """Of few places and units; the state begins at 0."""
    names = {"wi": "weight_ih_l0", "wh": "weight_hh_l0", "bi": "bias_ih_l0", "bh": "bias_hh_l0"}
    for dtype in REALS:
        for (kind, gates), (b, t, i, h) in [(k, d) for k in (("lstm", 4), ("gru", 3)) for d in ((2, 3, 5, 4),
                                                                                                (1, 7, 2, 1))]:
            given = {"x": waves(dtype, (b, t, i), 1), "wi": waves(dtype, (gates * h, i), 2, 1),
                     "wh": waves(dtype, (gates * h, h), 3, 1),
                     "bi": waves(dtype, (gates * h,), 4, 1), "bh": waves(dtype, (gates * h,), 5, 1)}
            states = ", ".join(f"{place}={name}" for name, place in names.items())
            lines = (f"m = torch.nn.{kind.upper()}({i}, {h}, batch_first=True, dtype=x.dtype)\n"
                     f"torch.func.functional_call(m, dict({states}), (x,))[0]")
            yield rounding(f"{kind} {dtype} {(b, t, i, h)}", "(layer(x))", lines, given,
                           before=f"local layer = nn.{kind}({i}, {h}, {{ dtype = '{dtype}' }})",
                           states={name: f"layer.{place}" for name, place in names.items()})


def turns():
    for dtype, time in [(d, t) for d in REALS for t in (1, 5)]:
        angle = f"torch.outer(torch.arange({time}).double(), 10000.0 ** (-torch.arange(2).double() / 2)).reshape(1, {time}, 1, 2)"
        lines = (f"a, (u, v) = {angle}, x.reshape(1, {time}, 2, 2, 2).unbind(3)\n"
                 "c, s = a.cos().to(x.dtype), a.sin().to(x.dtype)\n"
                 f"torch.stack([u * c - v * s, v * c + u * s], 3).reshape(1, {time}, 8)")
        yield rounding(f"rotary {dtype} {time}", "nn.rotary(x, { heads = 2 })", lines,
                       {"x": waves(dtype, (1, time, 8))})


GROUPS = [products, sums_of_products, windows, convolutions, bags, recurrences, turns]
