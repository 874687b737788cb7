# SPDX-License-Identifier: Apache-2.0
"""The cases of edges.py, of functions element by element, rows, indices and dtypes; edge_layers.py has those of layers.

Where Orrery is documented to differ, a case names in PyTorch what it does: `larger` and `smaller` give the whole
gradient to the first of two equal ones, `descending` sorts stably and NaN first.
"""
import itertools
import math

from edges import FORMAT, INTEGERS, REALS, Case, edges, rounded

UNARY = {
    "x:exp()": "x.exp()", "x:log()": "x.log()", "x:tanh()": "x.tanh()", "x:sigmoid()": "x.sigmoid()",
    "x:relu()": "larger(torch.zeros_like(x), x)", "x:sqrt()": "x.sqrt()", "x:rsqrt()": "x.rsqrt()",
    "x:recip()": "x.reciprocal()",
    "x:abs()": "x * torch.where(x.isnan(), x, x.sign()).detach()",
    "x:sign()": "torch.where(x.isnan(), x.detach(), x.sign())",
    "x:erf()": "x.erf()", "x:sin()": "x.sin()", "x:cos()": "x.cos()", "x:floor()": "x.floor()", "x:ceil()": "x.ceil()",
    "x:round()": "x.round()", "x:silu()": "x * x.sigmoid()", "x:clamp(-1.5, 2)": "smaller(larger(x, -1.5), 2)",
    "x:pow(2)": "x.pow(2)", "x:pow(3)": "x.pow(3)", "x:pow(-1)": "x.pow(-1)", "x:pow(0)": "x.pow(0)",
    "x:pow(1)": "x.pow(1)",
    "x:pow(0.5)": "x.pow(torch.tensor(0.5).to(x))", "x:pow(1.7)": "x.pow(torch.tensor(1.7, dtype=torch.float64).to(x))",
    "-x": "-x",
    "x + 1": "x + 1", "1 - x": "1 - x", "x * 0": "x * 0", "x / 0": "x / 0", "0 / x": "torch.zeros_like(x) / x",
    "2 / x": "2 / x",
    "x % 3": "x - (x / 3).floor() * 3", "x % -3": "x + (x / -3).floor() * 3", "x:maximum(0)": "larger(x, 0)",
    "x:minimum(0.5)": "smaller(x, 0.5)", "2 ^ x": "2 ** x", "0 ^ x": "0 ** x", "(-2) ^ x": "(-2) ** x",
    "x:gt(0):select(x, 0)": "torch.where(x > 0, x, 0)", "x:isfinite():select(x, 0)": "torch.where(x.isfinite(), x, 0)",
    "x:stop_gradient() * x": "x.detach() * x", "x * x": "x * x", "x - x": "x - x",
}
BINARY = {"x + y": "x + y", "x - y": "x - y", "x * y": "x * y", "x:maximum(y)": "larger(x, y)",
          "x:minimum(y)": "smaller(x, y)", "x:pow(y)": "x.pow(y)", "x:gt(y):select(x, y)": "torch.where(x > y, x, y)"}
COMPARED = ("gt", "lt", "ge", "le", "eq", "ne")


def vector(dtype, values):
    return (dtype, (len(values),), [rounded(v, dtype) if dtype in FORMAT else v for v in values])


def waves(dtype, shape, seed=0, size=2.0):
    """Numbers in no order."""
    return (dtype, shape, [rounded(math.sin(1.7 * i + seed) * size, dtype) for i in range(math.prod(shape))])


def unary():
    for dtype in REALS:
        x = vector(dtype, edges(dtype))
        for lua, torch in UNARY.items():
            yield Case(f"{lua} {dtype}", lua, torch, {"x": x}, ["x"], ulps=32,
                       absolute=1e-15 if dtype == "f64" else 1e-25)
        moderate = vector(dtype, [v for v in edges(dtype) if abs(v) < 1e3 or math.isnan(v)])
        yield Case(f"gelu {dtype}", "x:gelu()", "x * torch.sigmoid(1.5957691216057308 * (x + 0.044715 * x**3))",
                   {"x": moderate}, ["x"], ulps=64, absolute=1e-6)
        yield Case(f"gelu_exact {dtype}", "nn.gelu_exact(x)", "F.gelu(x)", {"x": moderate}, ["x"], ulps=64,
                   absolute=1e-6)
        yield Case(f"isfinite {dtype}", "x:isfinite()", "x.isfinite()", {"x": x})


def pairs(a, b):
    both = list(itertools.product(edges(a), edges(b)))
    return {"x": vector(a, [p[0] for p in both]), "y": vector(b, [p[1] for p in both])}


def binary():
    for dtype in REALS:
        given = pairs(dtype, dtype)
        for lua, torch in BINARY.items():
            yield Case(f"{lua} {dtype}", lua, torch, given, ["x", "y"], ulps=16)
        yield Case(f"x / y {dtype}", "x / y", "x / y", given, ["x"])
        for name in COMPARED:
            yield Case(f"{name} {dtype}", f"x:{name}(y)", f"x.{name}(y)", given)


def integers():
    """Each as PyTorch computes it of i64 or, where that is not whole, of f32. It wraps in the dtype."""
    whole = {"x:abs()": "x.abs()", "-x": "-x", "x:sign()": "x.sign()", "x:relu()": "x.clamp(min=0)", "x + 1": "x + 1",
             "x * 2": "x * 2", "x - 1": "x - 1", "x % 3": "x % 3", "x:floor()": "x", "x:clamp(0, 5)": "x.clamp(0, 5)"}
    wide = {"x:sum()": "w.sum()", "x:cumsum(1)": "w.cumsum(0)", "x:argmax()": "w.argmax()", "x:lt(300)": "w < 300",
            "x:gt(-1)": "w > -1", "x:eq(255)": "w == 255", "x:eq(-1)": "w == -1", "x:lt(3000000000)": "w < 3000000000",
            "x:eq(2)": "w == 2", "x:gt(0.5)": "w.float() > 0.5", "x:isfinite()": "w == w", "x * 0.5": "w.float() * 0.5",
            "x / 2": "w.float() / 2", "x:sqrt()": "w.float().sqrt()", "x:exp()": "w.float().exp()",
            "x:pow(2)": "w.float() ** 2"}
    for dtype in INTEGERS:
        given = {"x": vector(dtype, edges(dtype))}
        for lua, torch in wide.items():
            yield Case(f"{lua} {dtype}", lua, f"w = x.long()\n{torch}", given)
        for lua, torch in whole.items() if dtype != "bool" else ():
            yield Case(f"{lua} {dtype}", lua, torch, given)
        yield Case(f"sorted {dtype}", "x:sort()",
                   "x.sort(stable=True)" if dtype != "bool" else "v, i = x.int().sort(stable=True)\n(v.to(torch.bool), i)",
                   given)
        for name in COMPARED:
            yield Case(f"{name} {dtype}", f"x:{name}(y)", f"x.{name}(y)", pairs(dtype, dtype))
        for lua in ("x + y", "x - y", "x * y") if dtype != "bool" else ():
            yield Case(f"{lua} {dtype}", lua, lua, pairs(dtype, dtype))
        for name in ("logical_and", "logical_or"):
            yield Case(f"{name} {dtype}", f"x:{name}(y)", f"x.{name}(y)", pairs(dtype, dtype))


def casts():
    more = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 254.9, 256.0, 300.0, -1.0, 2**31, -2**31, -2**31 - 1, 2**32, 1e10, 9.3e18,
            -9.3e18,
            2049.0, 2051.0, 257.0, 259.0, 65519.0, 65520.0, 2.0**24 + 1, 2.0**24 + 3, 2.0**53, 6e-8, 3e-8, 1e-40, 1e-46]
    longs = [2**53 + 1, 2**62 + 1, 2**24 + 1, -2**24 - 1, 65520, 2**31, 256, 257, 1000003, 2**40 + 2**16 + 1]
    also = {dtype: more for dtype in REALS} | {"i64": longs, "i32": [2**24 + 1, 2**30 + 1, 65520], "u8": [], "bool": []}
    for a, b in itertools.product(REALS + INTEGERS, REALS + INTEGERS):
        yield Case(f"{a} to {b}", f"x:cast('{b}')", f"x.to({b})", {"x": vector(a, edges(a) + also[a])})


def mixed():
    """What dtype arithmetic with two of them has."""
    for a, b in itertools.permutations(REALS + INTEGERS, 2):
        given = {"x": vector(a, [1, 0, 1]), "y": vector(b, [1, 1, 0])}
        for lua, torch in {"x + y": "x + y", "x:eq(y)": "x == y",
                           "x:ne(0):select(x, y)": "torch.where(x != 0, x, y)"}.items():
            yield Case(f"{a} {b} {lua}", lua, torch, given)


NAN, INF = math.nan, math.inf
ROWS = [[1, 2, 3, 4, 5], [2, 2, 2, 2, 2], [0.0, -0.0, 0.0, -0.0, 0.0], [100, 101, 99, 100.5, 100.25],
        [1e-7, 2e-7, 3e-7, 6e-8, 0],
        [5, 1, 5, 5, 0], [88, 89, 90, -104, 11], [1e4, 1e4, -1e4, 0, 1e4]]
STRANGE = [[NAN, 1, 5, 2, 3], [1, 2, NAN, 2, NAN], [INF, 1, 2, 3, 4], [-INF, 1, 2, 3, 3], [-INF] * 5,
           [INF, -INF, 0, 1, 1]]


def table(dtype, rows):
    return (dtype, (len(rows), len(rows[0])), [rounded(float(x), dtype) for row in rows for x in row])


BY_ROWS = {
    "x:softmax()": "x.softmax(-1)", "x:logsumexp(-1)": "x.logsumexp(-1)", "x:sum(-1)": "x.sum(-1)",
    "x:mean(-1)": "x.mean(-1)",
    "x:max(-1)": "x.amax(-1)", "x:min(-1)": "x.amin(-1)", "x:cumsum(2)": "x.cumsum(1)", "x:topk(3)": "descending(x, 3)",
    "x:sort()": "ascending(x)", "x:sort(-1, { descending = true })": "descending(x, 5)", "x:sum(1)": "x.sum(0)",
    "x:max(1)": "x.amax(0)", "x:mean()": "x.mean()", "x:min()": "x.amin()",
}


def rows():
    for dtype in REALS:
        plain, strange = {"x": table(dtype, ROWS)}, {"x": table(dtype, ROWS + STRANGE)}
        for lua, torch in BY_ROWS.items():
            yield Case(f"{lua} {dtype}", lua, torch, plain, ["x"], ulps=64, sums=True, absolute=1e-12)
            yield Case(f"{lua} with NaN {dtype}", lua, torch, strange, ulps=64, sums=True)
        yield Case(f"argmax {dtype}", "x:argmax()", "x.argmax(-1)", strange)
        for correction in (0, 1):
            yield Case(f"var {dtype}", f"x:var(-1, {{ correction = {correction} }})",
                       f"x.var(-1, correction={correction})",
                       plain, ["x"], ulps=64, sums=True)
        small = {"x": table(dtype, ROWS[:7])}
        yield Case(f"sumsq {dtype}", "x:sumsq(-1)", "(x * x).sum(-1)", small, ["x"], ulps=64, sums=True)


def many():
    """Sums, means and squares of many numbers, whose parts a dtype of 16 bits does not hold."""
    names = {"x:mean()": "x.mean()", "x:var()": "x.var()", "x:var(1, { correction = 0 })": "x.var(correction=0)",
             "x:logsumexp()": "x.logsumexp(0)", "x:softmax()": "x.softmax(0)", "x:cumsum(1)": "x.cumsum(0)"}
    for dtype, n, size in itertools.product(REALS, (2, 3, 257, 1000, 5000), (1.0, 100.0, 1e-3)):
        x = vector(dtype, [(1 + (i * 7 % 11) / 11) * size for i in range(n)])
        for lua, torch in names.items():
            if "cumsum" not in lua or dtype != "f16":
                yield Case(f"{lua} of {n} times {size} {dtype}", lua, torch, {"x": x}, ["x"], ulps=512, sums=True)


def shapes():
    """Dims of 1, primes, many dims, long rows; reversed, strided and expanded tensors."""
    for dtype, shape in itertools.product(REALS, [(1,), (1, 1), (7,), (3, 1), (1, 3), (2, 3, 5), (2, 1, 3, 1),
                                                  (2, 1, 1, 2, 1, 3),
                                                  (17, 13), (1, 1025), (1031,)]):
        given, r = {"x": waves(dtype, shape)}, len(shape)
        for d, size in enumerate(shape):
            ways = {f"x:sum({d + 1})": f"x.sum({d})", f"x:max({d + 1})": f"x.amax({d})",
                    f"x:mean({d + 1})": f"x.mean({d})",
                    f"x:slice({d + 1}, -1, 1, -1) * 2": f"x.flip({d}) * 2",
                    f"x:slice({d + 1}, 1, -1, 2) * 2": f"x.index_select({d}, torch.arange(0, {size}, 2)) * 2",
                    f"x:pad({d + 1}, {size + 3}, {{ before = 2, value = 0/0 }})": f"F.pad(x, {[0] * (2 * (r - 1 - d)) + [2, 1]}, value=math.nan)",
                    f"orrery.concat({{ x, x * 2, x }}, {d + 1})": f"torch.cat([x, x * 2, x], {d})"}
            for lua, torch in ways.items():
                yield Case(f"{dtype}{shape} {lua}", lua, torch, given, ["x"], ulps=64, sums=True)
        for d, e in itertools.combinations(range(r), 2):
            yield Case(f"{dtype}{shape} transposed {d} {e}", f"x:transpose({d + 1}, {e + 1}):exp():sum(1)",
                       f"x.transpose({d}, {e}).exp().sum(0)", given, ["x"], ulps=64, sums=True)
        wide = ", ".join(map(str, (3, *shape)))
        yield Case(f"{dtype}{shape} expanded", f"(x:broadcast({wide}) * x):sum(1)", f"(x.expand({wide}) * x).sum(0)",
                   given, ["x"],
                   ulps=64, sums=True)


def indices():
    """Repeated ones, and those outside."""
    outside = {"t:gather(i)": "t", "t:take(i)": "t", "t:put(i, 9)": "t", "i:one_hot(5)": "i",
               "t:scatter_add(i, t:slice(1, 1, 1))": "t"}
    for dtype, kind in itertools.product(REALS, ("i64", "i32")):
        t, i, r = table(dtype, [[1, -2], [NAN, INF], [0.5, -0.0]]), (kind, (4,), [2, 0, 2, 1]), waves(dtype, (4, 2))
        v, apart, at = vector(dtype, [NAN, 7]), (kind, (2,), [5, 2]), (kind, (), [1])
        yield Case(f"gather {dtype} {kind}", "t:gather(i)", "t[i.long()]", {"t": t, "i": i}, ["t"])
        yield Case(f"take {dtype} {kind}", "t:take(i)", "t.reshape(-1)[i.long()]", {"t": t, "i": i}, ["t"])
        yield Case(f"scatter_add {dtype} {kind}", "t:scatter_add(i, r)", "t.index_add(0, i.long(), r)",
                   {"t": t, "i": i, "r": r}, ["t", "r"])
        yield Case(f"put {dtype} {kind}", "t:put(i, v)", "t.reshape(-1).index_put((i.long(),), v).reshape(3, 2)",
                   {"t": t, "i": apart, "v": v}, ["t", "v"])
        yield Case(f"put a number {dtype} {kind}", "t:put(i, 9)",
                   "t.reshape(-1).index_fill(0, i.long(), 9).reshape(3, 2)",
                   {"t": t, "i": i}, ["t"])
        yield Case(f"slice_at {dtype} {kind}", "t:slice_at(1, i, 2)", "t[1:3]", {"t": t, "i": at}, ["t"])
        yield Case(f"update_slice {dtype} {kind}", "t:update_slice(v:reshape(1, 2), 1, i)",
                   "torch.cat([t[:1], v.reshape(1, 2), t[2:]])", {"t": t, "v": v, "i": at}, ["t", "v"])
        for bad in (-1, 6, 2**31 - 1):
            for lua in outside:
                yield Case(f"{lua} of {bad} {dtype} {kind}", lua, "raise_error()", {"t": t, "i": (kind, (1,), [bad])})


GROUPS = [unary, binary, integers, casts, mixed, rows, many, shapes, indices]
