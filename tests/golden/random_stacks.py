# SPDX-License-Identifier: Apache-2.0
"""Random stacks of strategies for random models, each with the ranks that it runs on."""


def data(dice):
    return f"strategy.data {{ bucket = {dice.choice([1, 64, 26214400])} }}"


def zero(dice):
    stage = 1 + dice.below(3)
    more = [f"stage = {stage}"]
    more += dice.choice([["bucket = 64"], ["cut = 'tensor'"], [], []])
    more += ["reshard = 0"] if stage == 3 and dice.chance(0.3) else []
    more += [f"offload = '{dice.choice(['host', 'disk'])}'"] if dice.chance(0.2) else []
    return f"strategy.zero {{ {', '.join(more)} }}"


def recompute(dice):
    return dice.choice(["strategy.recompute { path = '' }", "strategy.recompute { mode = 'selective', path = '' }",
                        "strategy.recompute { path = 'l*' }", "strategy.recompute { path = '', offload = 'host' }",
                        "strategy.recompute { path = '', offload = 'disk' }"])


def pipeline(dice, size):
    schedule = dice.choice(["gpipe", "1f1b", "interleaved", "looped", "zb1", "zbv"])
    return f"strategy.pipeline {{ size = {size}, schedule = '{schedule}' }}"


def server(dice, ranks):
    servers = 1 + dice.below(ranks)
    dedicated = 1 if servers < ranks and dice.chance(0.3) else 0
    return f"strategy.server {{ servers = {servers}, dedicated = {dedicated}, bucket = {dice.choice([64, 26214400])} }}"


def tensor(dice, size):
    more = dice.choice(["", f"chunks = {2 * size}, ", "sequence = true, ", "vocab = false, ", "column = { '*' }, row = {}, ", "column = {}, row = { '*' }, "])
    return f"strategy.tensor {{ {more}size = {size} }}"


def context(dice, size):
    kind = dice.choice(["gathered", "ulysses", "ring"])
    chunks = f", chunks = {2 * size}" if kind != "ring" and dice.chance(0.3) else ""
    return f"strategy.context {{ size = {size}, kind = '{kind}'{chunks} }}"


def expert(dice, size):
    return f"strategy.expert {{ size = {size}, over = '{dice.choice(['time', 'batch'])}' }}"


def chosen(dice, model):
    """(name of the kind, ranks, parts as Lua)."""
    kind = dice.choice(["one", "data", "data", "zero", "zero", "server", "pipeline", "pipeline", "tensor", "tensor", "tensor", "context",
                        "context", "expert", "accumulate", "place", "mixed", "mixed", "mixed"])
    if kind in ("context", "tensor", "expert", "mixed") and not model.sequences and dice.chance(0.7):
        kind = dice.choice(["data", "zero", "pipeline", "server"])
    if kind == "expert" and not model.has_experts():
        kind = "tensor"
    microbatches = model.microbatches
    shared = dice.choice([n for n in (1, 2, 3, 4) if n <= microbatches])  # ranks that share the batch
    ranks, parts = dice.choice([2, 2, 3, 4]), []
    if kind == "one":
        ranks, parts = 1, [recompute(dice)]
    elif kind == "data":
        ranks, parts = shared, [data(dice)]
    elif kind == "zero":
        ranks, parts = shared, [data(dice), zero(dice)]
    elif kind == "server":
        ranks, parts = shared, [server(dice, shared)]
    elif kind == "accumulate":
        ranks, parts = shared, [data(dice), "strategy.accumulate {}"] if shared > 1 else ["strategy.accumulate {}"]
    elif kind == "place":
        ranks, parts = 2, ["PLACE"]
    elif kind == "mixed":
        ranks, parts = 4, mixed(dice, model)
    else:
        parts = [{"pipeline": pipeline, "tensor": tensor, "context": context, "expert": expert}[kind](dice, ranks)]
    if dice.chance(0.2) and kind != "one":
        parts.append(recompute(dice))
    if dice.chance(0.15) and kind not in ("accumulate", "place") and not any("pipeline" in p for p in parts):
        parts.append("strategy.accumulate {}")
    return kind, ranks, parts


def mixed(dice, model):
    kinds = [tensor, tensor, context, pipeline] + [expert] * 2 * model.has_experts()
    inner = dice.choice(kinds)(dice, 2)
    other = dice.choice([pipeline, context, tensor, None, None])
    if other and other.__name__ not in inner:
        return [other(dice, 2), inner]
    if model.microbatches < 2:
        return [inner.replace("size = 2", "size = 4")]
    return [data(dice).replace("{ ", "{ size = 2, "), inner] + ([zero(dice)] if dice.chance(0.6) else [])


def stack_of(dice, model):
    """(name of its kind, ranks, Lua of compile's option)."""
    kind, ranks, parts = chosen(dice, model)
    modules, text = [name for name, _ in model.modules], ", ".join(parts)
    sides = [", ".join(f"'{m}'" for m in side) for side in (modules[:len(modules) // 2], modules[len(modules) // 2:])]
    text = text.replace("PLACE", f"strategy.place {{ modules = {{ {{ {sides[0]} }}, {{ {sides[1]} }} }} }}")
    fast = dice.choice(["", "", "", "", "reduce = 'fast', ", "numerics = 'fast', "])
    return kind, ranks, f"strategy = {{ {text} }}, {fast}"
