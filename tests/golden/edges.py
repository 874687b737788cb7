# SPDX-License-Identifier: Apache-2.0
"""Functions of tensors at the edges of their dtypes: infinities, NaN, zeros of both signs, subnormals, the largest
numbers, ties. A `Case` is one of them as Lua and as PyTorch; `script` computes many in one process, and `results` reads
what they print, bit by bit.
"""
import math
import os
import pathlib
import re
import subprocess
import tempfile

REALS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i64", "i32", "u8", "bool")
# Bits of the fraction, the smallest exponent of a normal number, the largest number.
FORMAT = {"f64": (52, -1022, (2 - 2.0**-52) * 2.0**1023), "f32": (23, -126, (2 - 2.0**-23) * 2.0**127),
          "f16": (10, -14, 65504.0), "bf16": (7, -126, (2 - 2.0**-7) * 2.0**127)}
LEAST = {"i64": -2**63, "i32": -2**31, "u8": 0, "bool": 0}
MOST = {"i64": 2**63 - 1, "i32": 2**31 - 1, "u8": 255, "bool": 1}


def rounded(x, dtype):
    """The number of a real dtype that is nearest, of two the even one."""
    if dtype == "f64" or x == 0 or not math.isfinite(x):
        return x
    bits, least, most = FORMAT[dtype]
    step = 2.0 ** (max(math.frexp(x)[1] - 1, least) - bits)
    size = round(abs(x) / step) * step
    return math.copysign(math.inf if size > most else size, x)


def ulp(x, dtype):
    """The distance of neighbours at x."""
    bits, least, most = FORMAT[dtype]
    exponent = math.frexp(min(abs(x), most))[1] - 1 if x else least
    return 2.0 ** (max(exponent, least) - bits)


def edges(dtype):
    """Numbers at which functions are wrong."""
    if dtype not in FORMAT:
        return sorted({LEAST[dtype], MOST[dtype], *(n for n in (-8, -7, -3, -2, -1, 0, 1, 2, 3, 7, 8)
                                                    if LEAST[dtype] <= n <= MOST[dtype])})
    bits, least, most = FORMAT[dtype]
    sizes = [0.0, 2.0**(least - bits), 2.0**(least - 1), 2.0**least, 1e-3, 0.25, 0.5, 1 - 2.0**(-bits - 1), 1.0,
             1 + 2.0**-bits, 1.5, 2.0, 2.5, 3.0, 10.0, 20.0, 90.0, 1e3, most / 4, most, math.inf]
    return [math.copysign(rounded(x, dtype), sign) for x in sizes for sign in (1, -1)] + [math.nan]


def literal(x):
    if isinstance(x, (bool, int)):
        return "math.mininteger" if x == -2**63 else str(x).lower()
    if math.isnan(x):
        return "0/0"
    return ("-" if x < 0 else "") + "1/0" if math.isinf(x) else x.hex()


def nested(shape, numbers):
    """Nested lists of Lua's; a number, of a tensor without dims."""
    if not shape:
        return literal(next(numbers))
    return "{" + ", ".join(nested(shape[1:], numbers) for _ in range(shape[0])) + "}"


def tensor(dtype, shape, numbers):
    return f"orrery.tensor({nested(shape, iter(numbers))}, '{dtype}')"


class Case:
    """`lua` and `torch`, an expression or lines that end with one, of `inputs`, {name: (dtype, shape, numbers)}; both give
    a tensor or several. `wanted` names inputs by which the first result is differentiated. Some inputs are `states` of a
    layer that the line `before` makes, {name: its place}. Errors of so many `ulps`, or up to `absolute`, are rounding;
    they are of the largest number of a result if `sums`."""

    def __init__(self, name, lua, torch, inputs, wanted=(), ulps=4, sums=False, absolute=0, before="", states=None):
        self.name, self.lua, self.torch, self.inputs, self.wanted = name, lua, torch, inputs, tuple(wanted)
        self.ulps, self.sums, self.absolute, self.before, self.states = ulps, sums, absolute, before, states or {}

    def script(self, number):
        given = {name: tensor(*value) for name, value in self.inputs.items()}
        before = [f"{place}:write({given.pop(name)})" for name, place in self.states.items()]
        slopes = f"{{ {', '.join(self.states.get(n, n) for n in self.wanted)} }}" if self.wanted else "nil"
        return (f"do {self.before}\n  {' '.join(before)}\n"
                f"  show({number}, function() return {', '.join(given.values())} end, function({', '.join(given)})\n"
                f"    return differentiated({slopes}, {self.lua})\n  end)\nend\n")


HEAD = """local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
-- The results, and the slopes of the first one times 0.5, 1, 1.5, 0.5, ...
local function differentiated(by, y, ...)
  if not by then return y, ... end
  local n = 1
  for _, size in ipairs(y.shape) do n = n * size end
  local weights = ((orrery.iota(n, "f32") % 3 + 1) * 0.5):cast(y.dtype):reshape { table.unpack(y.shape, 1, #y.shape) }
  local all = { y, ... }
  for _, slope in ipairs(orrery.grad((y * weights):sum(), by)) do all[#all + 1] = slope end
  return table.unpack(all)
end
local function flat(list, into)
  if type(list) ~= "table" then list = { list } end
  for _, x in ipairs(list) do
    if type(x) == "table" then flat(x, into)
    elseif math.type(x) == "float" then into[#into + 1] = x ~= x and "nan" or ("%a"):format(x)
    else into[#into + 1] = tostring(x) end
  end
  return into
end
local function show(number, inputs, f)
  local ok, results = pcall(function() return table.pack(orrery.func(f)(inputs())) end)
  if not ok then return orrery.log("%s", ("@%d error %s"):format(number, tostring(results):gsub("\\n", " "))) end
  for i = 1, results.n do
    local r = results[i]
    local values = #r.shape == 0 and { r:item() } or r:tolist()
    local numbers = table.concat(flat(values, {}), " ")
    orrery.log("%s", ("@%d %d %s [%s] %s"):format(number, i, r.dtype, table.concat(r.shape, ","), numbers))
  end
end
"""


def script(cases):
    return HEAD + "".join(case.script(i) for i, case in enumerate(cases))


def number(text):
    if text in ("true", "false"):
        return int(text == "true")
    if text == "nan" or text == "-nan":
        return math.nan
    return float.fromhex(text) if "x" in text or "inf" in text else int(text)


def results(output):
    """{case: its error, or a list of (dtype, shape, numbers)}."""
    found = {}
    for line in output.splitlines():
        if match := re.search(r"@(\d+) error (.*)", line):
            found[int(match[1])] = match[2]
        elif match := re.search(r"@(\d+) (\d+) (\w+) \[([\d,]*)\] ?(.*)", line):
            shape = tuple(int(n) for n in match[4].split(",") if n)
            found.setdefault(int(match[1]), []).append((match[3], shape, [number(x) for x in match[5].split()]))
    return found


def computed_by(build, cases, *kernels, **variables):
    """results() of a run on these kernels, first choice first."""
    words = [word for name in kernels for word in ("--kernels", name)]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "edges.lua")
        path.write_text(script(cases))
        run = subprocess.run([build / "orrery", "run", "--threads", "1", *words, path], text=True, capture_output=True,
                             timeout=300, env=os.environ | variables)
    if run.returncode:
        raise AssertionError(run.stderr[-2000:])
    return results(run.stdout)


def near(x, native, exact, case, dtype, largest):
    """Whether a number is PyTorch's own (None: it has none), or as near to the one that f64 gives."""
    right = rounded(exact, dtype) if exact is not None and dtype in FORMAT else exact
    if any(y is not None and (x == y or math.isnan(x) and math.isnan(y)) for y in (native, right)):
        return True
    if dtype not in FORMAT or exact is None or not (math.isfinite(x) and math.isfinite(exact)):
        return False
    miss = abs(native - exact) if native is not None and math.isfinite(native) else 0
    return abs(x - exact) <= case.ulps * ulp(largest if case.sums else exact, dtype) + 2 * miss + case.absolute


def differences(case, got, native, exact):
    """What is not PyTorch's, as a list of texts. Each is a list of results or an error."""
    if isinstance(got, str) or got is None:
        return [] if isinstance(native, str) and isinstance(exact, str) else [f"{got}"]
    base = native if not isinstance(native, str) else exact
    if isinstance(base, str):
        return [f"no error as there: {base}"]
    found = [] if len(got) == len(base) else [f"{len(got)} results, not {len(base)}"]
    for i, (dtype, shape, numbers) in enumerate(got[:len(base)]):
        if tuple(shape) != tuple(base[i][1]) or (dtype != base[i][0] and base is native):
            found.append(f"result {i + 1} is {dtype}{list(shape)}, not {base[i][0]}{list(base[i][1])}")
            continue
        theirs, truth = (r[i][2] if not isinstance(r, str) else [None] * len(numbers) for r in (native, exact))
        largest = max([abs(t) for t in truth if t is not None and math.isfinite(t)], default=0)
        for j, x in enumerate(numbers):
            if not near(x, theirs[j], truth[j], case, dtype, largest):
                given = {n: v[2][j] if len(v[2]) == len(numbers) else "..." for n, v in case.inputs.items()}
                found.append(f"result {i + 1} [{j}] of {given}: {x}, not {theirs[j]} (exactly {truth[j]})")
    return found
