# SPDX-License-Identifier: Apache-2.0
"""Layers for random models (random_models.py): each method adds one, on what earlier ones made, as a line of Lua and as
a line of Python. `T` is random_layers_torch.py.
"""
import math
import re


class Layers:
    """Of a Loss (expressions.py) with modules: `modules` are lines of Lua, their parameters are the Loss's."""

    def module(self, make, **parameters):
        """The name of a new module that `make` makes; its parameters are called NAME.weight in Lua, NAME_weight here."""
        name = f"l{len(self.modules)}"
        self.modules.append((name, make))
        for part, shape in parameters.items():
            scale = 1 / math.sqrt(max(1, math.prod(shape[1:])))
            self.parameters[f"{name}_{part}"] = (shape, [round(self.dice.normal() * scale + (len(shape) == 1), 4)
                                                        for _ in range(math.prod(shape))])
        return name

    def options(self, **given):
        parts = [f"{k} = {str(v).lower() if isinstance(v, bool) else v}" for k, v in given.items()]
        return "{ " + ", ".join([*parts, f"dtype = '{self.dtype}'"]) + " }"

    def of_rank(self, rank, least=1):
        return [v for v in self.values if v.batched and len(v.shape) == rank and math.prod(v.shape) <= 800
                and min(v.shape[1:], default=least) >= least]

    def layer(self, x):
        """A layer on x, a value of the samples."""
        rank = len(x.shape)
        ops = [self.linear, self.again] if rank >= 2 else []
        if 3 <= rank <= 5:
            ops += [self.conv, self.conv, self.conv_transpose, self.pool, self.adaptive, self.channel_norm, self.batchnorm]
        ops += [self.batchnorm] if rank == 2 else []
        if rank == 3:
            ops += [self.attention, self.attention, self.recurrent, self.scan, self.block]
            ops += [self.switch] if self.dtype == "f32" else []
        ops += [self.embedding, self.bag, self.state, self.one_hot, self.slice_at, self.penalty, self.derivative, self.derivative, self.whole_batch]
        self.dice.choice(ops)(x)

    # -- products --------------------------------------------------------------------------------
    def linear(self, x, outputs=None):
        inputs, outputs, bias = x.shape[-1], outputs or self.dice.choice([1, 2, 3, 4, 6]), self.dice.chance(0.7)
        if self.dice.chance(0.15):
            both = self.module(f"nn.linear({inputs}, {{ {outputs}, 2 }}, {self.options(bias=bias)})", weight=(outputs + 2, inputs),
                               **{"bias": (outputs + 2,)} if bias else {})
            return self.add(f"(select(1, m.{both}({x.name})))",
                            f"F.linear({x.name}, {both}_weight{f', {both}_bias' * bias})[..., :{outputs}]",
                            (*x.shape[:-1], outputs), x.batched)
        l = self.module(f"nn.linear({inputs}, {outputs}, {self.options(bias=bias)})", weight=(outputs, inputs),
                        **{"bias": (outputs,)} if bias else {})
        self.repeatable.append((l, inputs, outputs, bias))
        self.add(f"m.{l}({x.name})", f"F.linear({x.name}, {l}_weight{f', {l}_bias' * bias})", (*x.shape[:-1], outputs), x.batched)

    def again(self, x):
        """A linear layer that an earlier value went through."""
        fitting = [r for r in self.repeatable if r[1] == x.shape[-1]]
        if fitting:
            l, _, outputs, bias = self.dice.choice(fitting)
            self.add(f"m.{l}({x.name})", f"F.linear({x.name}, {l}_weight{f', {l}_bias' * bias})",
                     (*x.shape[:-1], outputs), x.batched)

    def block(self, x):
        """What transformers have beside attention, residual."""
        self.linear(x, 2 * x.shape[-1])
        y = self.values[-1]
        self.add(f"{y.name}:gelu()", f"F.gelu({y.name}, approximate='tanh')", y.shape, 1)
        self.linear(self.values[-1], x.shape[-1])
        self.add(f"{x.name} + {self.values[-1].name}", f"{x.name} + {self.values[-1].name}", x.shape, 1)

    def per_dim(self, count, choose):
        """A number for all dims, or one for each: as a list, and as Lua."""
        numbers = [choose()] * count if self.dice.chance(0.6) else [choose() for _ in range(count)]
        return numbers, str(numbers[0]) if len(set(numbers)) == 1 else "{ " + ", ".join(map(str, numbers)) + " }"

    def conv(self, x):
        n, inputs = len(x.shape) - 2, x.shape[1]
        groups = self.dice.choice([g for g in (1, 1, 2, 3, inputs) if inputs % g == 0])
        outputs, bias = groups * self.dice.choice([1, 2]), self.dice.chance(0.6)
        size, lua_size = self.per_dim(n, lambda: 1 + self.dice.below(3))
        dilation, lua_dilation = self.per_dim(n, lambda: 1 + self.dice.below(2))
        same = self.dice.chance(0.2)
        stride, lua_stride = ([1] * n, "1") if same else self.per_dim(n, lambda: 1 + self.dice.below(3))
        padding, lua_padding = ("same", "'same'") if same else self.per_dim(n, lambda: self.dice.below(3))
        reach = [(k - 1) * d + 1 for k, d in zip(size, dilation)]
        shape = list(x.shape[2:]) if same else [(l + 2 * p - r) // s + 1 for l, p, r, s in zip(x.shape[2:], padding, reach, stride)]
        if min(shape) < 1:
            return
        o = self.options(stride=lua_stride, padding=lua_padding, dilation=lua_dilation, groups=groups, bias=bias)
        l = self.module(f"nn.conv{n}d({inputs}, {outputs}, {lua_size}, {o})", weight=(outputs, inputs // groups, *size),
                        **{"bias": (outputs,)} if bias else {})
        given = f"{l}_weight, {f'{l}_bias' if bias else None}, {stride}, {padding!r}, {dilation}, {groups}"
        self.add(f"m.{l}({x.name})", f"F.conv{n}d({x.name}, {given})", (x.shape[0], outputs, *shape), 1)

    def conv_transpose(self, x):
        n, inputs = len(x.shape) - 2, x.shape[1]
        groups = self.dice.choice([g for g in (1, 1, 2, inputs) if inputs % g == 0])
        each, bias = self.dice.choice([1, 2]), self.dice.chance(0.6)
        size, lua_size = self.per_dim(n, lambda: 1 + self.dice.below(3))
        stride, lua_stride = self.per_dim(n, lambda: 1 + self.dice.below(3))
        dilation, lua_dilation = self.per_dim(n, lambda: 1 + self.dice.below(2))
        padding, lua_padding = self.per_dim(n, lambda: self.dice.below(2))
        extra, lua_extra = self.per_dim(n, lambda: self.dice.below(2))
        shape = [(l - 1) * s - 2 * p + (k - 1) * d + e + 1
                 for l, s, p, k, d, e in zip(x.shape[2:], stride, padding, size, dilation, extra)]
        if min(shape) < 1 or math.prod(shape) > 200 or any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
            return
        o = self.options(stride=lua_stride, padding=lua_padding, output_padding=lua_extra, dilation=lua_dilation,
                         groups=groups, bias=bias)
        l = self.module(f"nn.conv_transpose{n}d({inputs}, {each * groups}, {lua_size}, {o})", weight=(inputs, each, *size),
                        **{"bias": (each * groups,)} if bias else {})
        given = f"{l}_weight, {f'{l}_bias' if bias else None}, {stride}, {padding}, {extra}, {groups}, {dilation}"
        self.add(f"m.{l}({x.name})", f"F.conv_transpose{n}d({x.name}, {given})", (x.shape[0], each * groups, *shape), 1)

    def pool(self, x):
        n, largest = len(x.shape) - 2, self.dice.chance(0.5)
        size, lua_size = self.per_dim(n, lambda: 1 + self.dice.below(3))
        stride, lua_stride = self.per_dim(n, lambda: 1 + self.dice.below(2))
        dilation, lua_dilation = self.per_dim(n, lambda: 1 + largest * self.dice.below(2))
        padding, lua_padding = self.per_dim(n, lambda: self.dice.below(1 + min(size) // 2))
        shape = [(l + 2 * p - (k - 1) * d - 1) // s + 1
                 for l, p, k, d, s in zip(x.shape[2:], padding, size, dilation, stride)]
        if min(shape) < 1 or any(k > l for k, l in zip(size, x.shape[2:])):
            return
        o = f"stride = {lua_stride}, padding = {lua_padding}"
        if largest:
            make, torch = f"nn.max_pool{n}d({lua_size}, {{ {o}, dilation = {lua_dilation} }})", \
                f"F.max_pool{n}d({x.name}, {size}, {stride}, {padding}, {dilation})"
        else:
            counted = self.dice.chance(0.5)
            make, torch = f"nn.avg_pool{n}d({lua_size}, {{ {o}, count_include_pad = {str(counted).lower()} }})", \
                f"F.avg_pool{n}d({x.name}, {size}, {stride}, {padding}, count_include_pad={counted})"
        self.add(f"m.{self.module(make)}({x.name})", torch, (*x.shape[:2], *shape), 1)

    def adaptive(self, x):
        n = len(x.shape) - 2
        size = [1 + self.dice.below(l) for l in x.shape[2:]]
        l = self.module(f"nn.adaptive_avg_pool{n}d {{ {', '.join(map(str, size))} }}")
        self.add(f"m.{l}({x.name})", f"F.adaptive_avg_pool{n}d({x.name}, {size})", (*x.shape[:2], *size), 1)

    # -- norms -----------------------------------------------------------------------------------
    def channel_norm(self, x):
        channels, affine = x.shape[1], self.dice.chance(0.6)
        groups = self.dice.choice([g for g in (1, 2, 3, channels) if channels % g == 0])
        if math.prod(x.shape[2:]) * (channels // groups) < 2:
            return
        one = groups == channels and self.dice.chance(0.5)
        make = f"nn.instancenorm({channels}" if one else f"nn.groupnorm({groups}, {channels}"
        l = self.module(f"{make}, {self.options(affine=affine)})", **{"weight": (channels,), "bias": (channels,)} if affine else {})
        self.add(f"m.{l}({x.name})", f"F.group_norm({x.name}, {groups}{f', {l}_weight, {l}_bias' * affine})", x.shape, 1)

    def batchnorm(self, x):
        channels, affine, sync = x.shape[1], self.dice.chance(0.6), self.dice.chance(0.5)
        l = self.module(f"nn.batchnorm({channels}, {self.options(affine=affine, sync=sync, eps=0.1, momentum=0.3)})",
                        **{"weight": (channels,), "bias": (channels,)} if affine else {})
        self.states |= {f"{l}_running_mean": ((channels,), 0), f"{l}_running_var": ((channels,), 1)}
        self.whole = self.whole or sync
        given = f"{l}_weight, {l}_bias" if affine else "None, None"
        self.add(f"m.{l}({x.name})", f"T.batchnorm({x.name}, {given}, '{l}', {sync}, S)", x.shape, 1)

    # -- sequences -------------------------------------------------------------------------------
    def attention(self, x):
        heads, d = self.dice.choice([1, 2, 4]), self.dice.choice([2, 4])
        kv = self.dice.choice([h for h in (1, 2, 4) if heads % h == 0])
        y = self.dice.choice([x, *self.of_rank(3)])
        (_, t, c), (s, e) = x.shape, y.shape[1:]
        if t > 12 or s > 12:
            return
        names = []
        for source, width, outputs in ((x, c, heads * d), (y, e, kv * d), (y, e, kv * d)):
            self.linear(source, outputs)
            names.append(self.values[-1].name)
        q, k, v = names
        lua, torch = [f"heads = {heads}"], [f"heads={heads}"]

        def option(lua_text, torch_text=None):
            lua.append(lua_text)
            torch.append((torch_text or lua_text).replace("true", "True").replace(" = ", "="))
        option(f"kv_heads = {kv}") if kv != heads or self.dice.chance(0.3) else None
        if self.dice.chance(0.4):
            option("causal = true")
        if self.dice.chance(0.3):
            option(f"window = {1 + self.dice.below(4)}")
        if self.dice.chance(0.2):
            option("scale = 0.7")
        if self.dice.chance(0.2):
            option(f"offset = {self.dice.below(s)}")
        if self.dice.chance(0.3):
            some = self.dice.choice([(1, 1, s), (heads, t, s), (1, t, s), (heads, 1, s)])
            m = self.input(self.fields, "x", (self.batch, *some), 1).name
            option(f"mask = {m}:gt(-0.7)", f"mask={m} > -0.7")
        if self.dice.chance(0.3):
            shape = self.dice.choice([(1, heads, t, s), (heads, t, s), (t, s), (1, 1, t, s), (heads, 1, s)])
            b = self.parameter(shape).name
            option(f"bias = {b}", f"bias={b}")
        if self.dice.chance(0.3):
            inter = self.dice.chance(0.5)
            for n, h in ((q, heads), (k, kv)):
                self.lua.append(f"{n} = nn.rotary({n}, {{ heads = {h}, interleaved = {str(inter).lower()} }})")
                self.torch.append(f"{n} = T.rotary({n}, {h}, {inter})")
            self.tolerance = max(self.tolerance, 1e-6)
        self.add(f"nn.attention({q}, {k}, {v}, {{ {', '.join(lua)} }})", f"T.attention({q}, {k}, {v}, {', '.join(torch)})",
                 (x.shape[0], t, heads * d), 1)

    def recurrent(self, x):
        _, t, c = x.shape
        if t > 8:
            return
        kind, hidden, layers = self.dice.choice(["lstm", "gru"]), self.dice.choice([1, 2, 3]), 1 + self.dice.below(2)
        bias, both = self.dice.chance(0.7), self.dice.chance(0.4)
        gates, parts, width = 4 if kind == "lstm" else 3, {}, c
        for layer in range(layers):
            for end in [f"l{layer}", f"l{layer}_reverse"][:1 + both]:
                parts |= {f"weight_ih_{end}": (gates * hidden, width), f"weight_hh_{end}": (gates * hidden, hidden)}
                parts |= {f"bias_ih_{end}": (gates * hidden,), f"bias_hh_{end}": (gates * hidden,)} if bias else {}
            width = hidden * (1 + both)
        l = self.module(f"nn.{kind}({c}, {hidden}, {self.options(layers=layers, bias=bias, bidirectional=both)})", **parts)
        state, rows = None, layers * (1 + both)
        if self.dice.chance(0.5):
            made = [self.input(self.fields, "x", (self.batch, rows, hidden), 1).name for _ in range(1 + (kind == "lstm"))]
            state = made[0] if kind == "gru" else f"{{ h = {made[0]}, c = {made[1]} }}"
        given = f"'{kind}', {x.name}, {{{', '.join(f'{p!r}: {l}_{p}' for p in parts)}}}, {hidden}, {layers}, {bias}, {both}"
        begin = f", [{', '.join(made)}]" if state else ""
        if self.dice.chance(0.7):
            return self.add(f"(select(1, m.{l}({x.name}{f', {state}' if state else ''})))", f"T.recurrent({given}{begin})[0]",
                            (x.shape[0], t, hidden * (1 + both)), 1)
        last = ".h" if kind == "lstm" else ""
        self.add(f"(select(2, m.{l}({x.name}{f', {state}' if state else ''}))){last}", f"T.recurrent({given}{begin})[1]",
                 (x.shape[0], rows, hidden), 1)

    def scan(self, x):
        _, t, c = x.shape
        w = self.parameter((c, c)).name
        if t > 8:
            return
        self.add(f"(orrery.scan(function(s, at, t) s = ((s and s:matmul({w}) or 0) + at * t):tanh() return s, s + at end, nil, {x.name}))",
                 f"T.scan({x.name}, {w})", x.shape, 1)

    def switch(self, x):
        _, t, d = x.shape
        experts, hidden, top = self.dice.choice([2, 4]), self.dice.choice([2, 4]), 1 + self.dice.below(2)
        group = self.dice.choice([g for g in range(1, t + 1) if t % g == 0])
        capacity = self.dice.choice([0.5, 1, 1.25, 4])
        l = self.module(f"nn.switch({d}, {{ experts = {experts}, hidden = {hidden}, top = {top}, capacity = {capacity}, "
                        f"group = {group}, balance = 0.1, z = 0.05, act = nn.tanh }})",
                        router_weight=(experts, d), up=(experts, d, hidden), down=(experts, hidden, d))
        self.lua.append(f"local y_{l}, aux_{l} = m.{l}({x.name})")
        self.torch.append(f"y_{l}, aux_{l} = T.switch({x.name}, {l}_router_weight, {l}_up, {l}_down, {top}, {capacity}, {group})")
        self.losses.append((f"aux_{l}.loss", f"aux_{l}"))
        self.add(f"y_{l}", f"y_{l}", x.shape, 1)

    # -- tables and places -----------------------------------------------------------------------
    def ids(self, shape, below):
        return self.index((self.batch, *shape), below)

    def embedding(self, _):
        count, dim = self.dice.choice([3, 5, 9, 40]), self.dice.choice([2, 3, 4])
        shape = self.dice.choice([(), (3,), (4,), (2, 2)])
        i = self.ids(shape, count)
        l = self.module(f"nn.embedding({count}, {dim}, {self.options()})", weight=(count, dim))
        self.add(f"m.{l}(batch.{i})", f"F.embedding({i}, {l}_weight)", (self.batch, *shape, dim), 1)
        y = self.values[-1]
        for _ in range(self.dice.choice([0, 0, 1, 2])):  # read again in another place
            i = self.ids(shape, count)
            self.add(f"m.{l}(batch.{i}):sin()", f"F.embedding({i}, {l}_weight).sin()", (self.batch, *shape, dim), 1)
        if self.dice.chance(0.4):  # the table once more, as a layer of logits
            tied = self.module(f"nn.linear({dim}, {count}, {{ bias = false, tie = m.{l}.weight }})")
            self.add(f"m.{tied}({y.name})", f"F.linear({y.name}, {l}_weight)", (self.batch, *shape, count), 1)

    def bag(self, _):
        count, dim, mode = 5, self.dice.choice([2, 3]), self.dice.choice(["mean", "sum", "max"])
        padding = self.dice.choice([None, 0, 4])
        i = self.ids((self.dice.choice([1, 3, 4]),), count)
        given = f"mode = '{mode}'" + (f", padding = {padding}" if padding is not None else "")
        l = self.module(f"nn.embedding_bag({count}, {dim}, {{ {given}, dtype = '{self.dtype}' }})", weight=(count, dim))
        self.add(f"m.{l}(batch.{i})", f"T.bag({i}, {l}_weight, {mode!r}, {padding})", (self.batch, dim), 1)

    def one_hot(self, _):
        n, shape = self.dice.choice([2, 4]), self.dice.choice([(), (3,)])
        i = self.ids(shape, n)
        self.add(f"batch.{i}:one_hot({n}, '{self.dtype}')", f"F.one_hot({i}, {n}).double()", (self.batch, *shape, n), 1)

    def slice_at(self, x):
        d = self.dice.choice(x.own or [None])
        if d is None:
            return
        size = 1 + self.dice.below(x.shape[d])
        at = self.dice.below(x.shape[d] - size + 1)
        i = self.index((), 1)
        self.indices[i] = ((), [at])
        if self.dice.chance(0.5):
            return self.add(f"{x.name}:slice_at({d + 1}, kept.{i} + 0, {size})", f"{x.name}.narrow({d}, {at}, {size})",
                            self.changed(x, d, size), x.batched)
        self.add(f"{x.name}:update_slice({x.name}:slice({d + 1}, 1, {size}) * 2, {d + 1}, kept.{i} + 0)",
                 f"{x.name}.slice_scatter({x.name}.narrow({d}, 0, {size}) * 2, {d}, {at}, {at + size})", x.shape, x.batched)

    def whole_batch(self, x):
        """What samples read of others."""
        n = x.name
        if self.dice.chance(0.4):
            return self.add(f"{n} - (select(1, {n}:microbatch_mean()))", f"{n} - T.microbatch_mean({n}, S)", x.shape, 1)
        self.whole = True
        if len(x.shape) == 2 and self.dice.chance(0.6):
            return self.add(f"({n}:matmul({n}:all_gather('batch'), {{ transpose_b = true }}) * 0.3):logsumexp(2)",
                            f"torch.logsumexp({n} @ {n}.T * 0.3, 1)", x.shape[:1], 1)
        self.add(f"{n} - {n}:mean(1, {{ keep = true }}) * 0.5", f"{n} - {n}.mean(0, keepdim=True) * 0.5", x.shape, 1)

    # -- derivatives and further losses ---------------------------------------------------------------
    def state(self, x):
        """A mean of a value, kept over the steps, which the next step reads."""
        n, name = x.name, f"b{len(self.states)}"
        self.states[name] = ((), 0)
        self.buffers.append(name)
        whole = tuple(range(len(x.shape)))
        self.lua.append(f"m.{name}:update(m.{name} * 0.75 + {n}:mean({{ {', '.join(str(d + 1) for d in whole)} }}):stop_gradient() * 0.25)"
                        if x.shape else f"m.{name}:update(m.{name} * 0.75 + {n}:stop_gradient() * 0.25)")
        self.torch.append(f"S.update('{name}', S['{name}'] * 0.75 + {n}.mean().detach() * 0.25)")
        self.add(f"{n} + m.{name}", f"{n} + S['{name}']", x.shape, x.batched)

    def penalty(self, _):
        if not self.parameters:
            return
        p = self.dice.choice(list(self.parameters))
        self.losses.append(self.dice.choice([(f"{p}:sumsq() * 0.01", f"({p} ** 2).sum() * 0.01"),
                                             (f"{p}:abs():mean() * 0.1", f"{p}.abs().mean() * 0.1")]))

    def sources(self, name):
        """The fields and parameters that a value is made of."""
        words = {name}
        for line in reversed([line for line in self.lua if " = " in line]):
            made, text = line.removeprefix("local ").split(" = ", 1)
            if words & set(re.findall(r"\w+", made)):
                words |= set(re.findall(r"\w+", text))
        return words & (self.fields.keys() | self.parameters.keys())

    def derivative(self, x):
        """Of the sum of x by a field; or, as a term of the loss, of its mean by a parameter."""
        sources = sorted(self.sources(x.name))
        fields = [n for n in sources if n in self.fields]
        if fields and self.dice.chance(0.7):
            f = self.dice.choice(fields)
            shape = self.fields[f][0]
            return self.add(f"orrery.grad({x.name}:tanh():sum(), {{ {f} }})[1]",
                            f"torch.autograd.grad({x.name}.tanh().sum(), {f}, create_graph=True)[0]", shape, 1)
        if sources and sources[0] in self.parameters:
            self.losses.append((f"orrery.grad({x.name}:tanh():mean(), {{ {sources[0]} }})[1]:sumsq() * 0.5",
                                f"(torch.autograd.grad({x.name}.tanh().mean(), {sources[0]}, create_graph=True)[0] ** 2).sum() * 0.5"))
