# SPDX-License-Identifier: Apache-2.0
"""What the errors of planned rows are: as planned, after a stack was run once, and of a constant share of peak."""
import math


def error(ratios):
    """Mean and largest error."""
    off = [abs(ratio - 1) for ratio in ratios]
    return f"mean {sum(off) / len(off):5.1%}, worst {max(off):5.1%}, {len(off)} rows"


def kind(row):
    """A stack on a kind of cards."""
    return f"{row.stack} {row.machine}"


def best_share(rows):
    """The share of peak with the smallest mean error of these (row, plan) themselves: as good as a constant can be."""
    reached = [plan.flops / row.seconds / plan.peak for row, plan in rows]
    return min(reached, key=lambda share: sum(abs(it / share - 1) for it in reached))


def table(found, fitted):
    """Lines for (row, plan) pairs; `fitted`: names of the rows that were run once."""
    kinds = {}
    for row, plan in found:
        kinds.setdefault(kind(row), []).append((row, plan))
    once, held = {}, []
    for name, its in kinds.items():
        known = [plan.seconds / row.seconds for row, plan in its if row.name in fitted]
        once[name] = math.exp(sum(map(math.log, known)) / len(known)) if known else None
        held += [(row, plan) for row, plan in its if row.name not in fitted]
        rest = [plan.seconds / row.seconds for row, plan in its if row.name not in fitted]
        if rest:
            after = f"; after one run {error([ratio / once[name] for ratio in rest])}" if known else ""
            yield f"{name:22} as planned {error(rest)}{after}"
    yield f"all held rows          as planned {error([plan.seconds / row.seconds for row, plan in held])}"
    some = [(row, plan) for row, plan in held if once[kind(row)]]
    if some:
        after = [plan.seconds / row.seconds / once[kind(row)] for row, plan in some]
        yield f"of stacks that ran once                  after one run {error(after)}"
    ratios = []
    for card in sorted({row.machine for row, _ in held}):
        its = [(row, plan) for row, plan in held if row.machine == card]
        share = best_share(its)
        ratios += [plan.flops / plan.peak / share / row.seconds for row, plan in its]
        yield f"{card:22} the best constant is {share:.1%} of peak, fitted to these rows themselves"
    yield f"all held rows          the best constants of cards {error(ratios)}"
    thumb = [plan.flops / plan.peak / (0.55 if row.machine == "a100" else 0.45) / row.seconds for row, plan in held]
    yield f"all held rows          55 % of an A100's peak, 45 % of the others' {error(thumb)}"
    left_out = []
    for left in sorted({row.stack for row, _ in held}):
        others = [plan.seconds / row.seconds for row, plan in found if row.stack != left]
        its = [plan.seconds / row.seconds for row, plan in held if row.stack == left]
        if others:
            middle = math.exp(sum(map(math.log, others)) / len(others))
            left_out += [ratio / middle for ratio in its]
            errors = error([ratio / middle for ratio in its])
            yield f"{left:22} {1 / middle:.2f} times as long, from all other stacks: {errors}"
    if left_out:
        yield f"all held rows          so: {error(left_out)}"


def memory(found):
    """Lines for those rows whose memory was published: the plan's, and with what the stack holds beside it."""
    its = [(row, plan) for row, plan in found if row.memory]
    for row, plan in its:
        theirs = plan.memory + row.beside
        yield (f"{row.name:28} {row.memory / 2**30:6.1f} GiB published, {plan.memory / 2**30:6.1f} planned, "
               f"{theirs / 2**30:6.1f} with what its source adds: {theirs / row.memory:.3f}")
    if its:
        yield f"memory: as planned {error([plan.memory / row.memory for row, plan in its])}"
        yield f"memory: with what sources add {error([(plan.memory + row.beside) / row.memory for row, plan in its])}"
