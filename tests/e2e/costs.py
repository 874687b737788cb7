# SPDX-License-Identifier: Apache-2.0
"""docs/strategies/costs.md: what the strategies of a stack say that a rank sends, what its plan counts,
and what the papers' formulas give.
"""
import re

from program import SOURCE

PAGE = SOURCE / "docs" / "strategies" / "costs.md"

HEAD = """# What strategies send, predicted and counted

Made by `python3 tests/e2e/strategies_test.py $PWD/build --write-costs`; the same test without the flag fails if
this page is not current, or if a prediction differs from its count by a byte. Runs of every row are held
against these figures too: a rank that sends other bytes than predicted ends with an error.

Bytes that a rank sends in a step, the one that sends most, by the strategy that causes them: what its
`predict` says beforehand, and what the lowered program has. The models are the small ones of
`tests/e2e/strategies.lua` with 8 microbatches in f32.

The last column is the papers' formula for the sums and gathers of weights alone, Ψ parameters of 4 bytes on P
ranks, R(n) = (n-1)/n. We count more where P is no power of two: a rank then completes several nodes of the
canonical tree, and sends each of them. Gradients of tied weights travel once for each use; losses and norms, a
few bytes, are in our figures too.

| Strategy | Sent per rank and step | Source |
|---|---|---|
| data | 2 R(P) Ψ | ring all-reduce, Patarasuk and Yuan 2009 |
| zero 1, 2 | 2 R(P) Ψ | Rajbhandari et al. 2020 |
| zero 3 | 3 R(P) Ψ, or 2 R(P) Ψ if gathered weights stay | Rajbhandari et al. 2020 |
| zero with groups of S | 3 R(S) Ψ inside + 2 R(P/S) Ψ/S across | Zhang et al. 2022 (MiCS) |
| pipeline | 2 m b s h inside, m b s h at the ends | Narayanan et al. 2021 |
| server | a worker Ψ, a server (P-1) Ψ/S | Li et al. 2014 |

| Stack | Ranks | Model | Predicted | Counted | Formula |
|---|---|---|---|---|---|
"""


def parameters(text):
    return int(re.search(r"bytes for each of (\d+) parameters", text)[1])


def share(ranks):
    return (ranks - 1) / ranks


def formula(stack, ranks, weights):
    """Of stacks that only share the batch; weights in bytes."""
    if re.search(r"strategy\.(server|pipeline|place)", stack) or "strategy.data" not in stack:
        return None
    if "stage = 3" not in stack and "fsdp" not in stack:
        return 2 * share(ranks) * weights
    group = re.search(r"group = (\d+)", stack)
    inner = int(group[1]) if group else ranks
    rounds = 2 if "reshard = false" in stack else 3
    return rounds * share(inner) * weights + 2 * share(ranks // inner) * weights / inner


def sent(text):
    """{strategy: (predicted, counted)} by the rank that sends most, of what `orrery plan` prints."""
    found = {}
    for name, predicted, _, counted in re.findall(
            r"predicted by (\w+): (\d+) bytes sent(, as counted|, but counted (\d+))", text):
        found[name] = max(found.get(name, (0, 0)), (int(predicted), int(counted or predicted)))
    return found


def row(stack, ranks, model, plan, weights):
    name = re.sub(r"schedule = function.*end(?= })", "schedule = function ... end", stack, flags=re.DOTALL)
    by, paper = sent(plan), formula(stack, ranks, weights)
    both = [", ".join(f"{cause} {figures[i]}" for cause, figures in by.items()) or "nothing" for i in (0, 1)]
    return "| `{}` | {} | {} | {} | {} | {} |\n".format(
        name.replace("strategy.", "")[1:-1].strip(), ranks, model, *both, "" if paper is None else round(paper))


def page(rows, planned):
    """`planned(stack, ranks, model)` is the plan's text."""
    weights = {model: 4 * parameters(planned("nil", 1, model)) for model in ("gpt", "mlp")}
    lines = {}  # a stack may stand in several rows
    for stack, worlds, models in rows:
        for ranks in worlds[:1]:
            plan = planned(stack, ranks, models[0])
            assert "but counted" not in plan, plan
            lines[row(stack, ranks, models[0], plan, weights[models[0]])] = True
    return HEAD + "".join(lines)
