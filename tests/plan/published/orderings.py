# SPDX-License-Identifier: Apache-2.0
"""Which of its own layouts PTD-P (rows.py) found faster, figures 12 to 16, as its text states.

The configurations are exact. Times exist only as curves, so only orderings can be held against the plan.
"""


def figures():
    """Yields name, ranks, layouts; of these each is slower than the one before."""
    gpt_175b = dict(layers=96, dim=12288, heads=96, tensor=8, pipeline=12, microbatch=1)
    for batch in (12, 36, 60):
        yield f"12, batch {batch}", 96, [gpt_175b | dict(batch=batch, chunks=chunks) for chunks in (4, 1)]
    gpt_162b = dict(layers=32, dim=20480, heads=128, microbatch=1)
    for batch in (32, 128):
        for path in ((8, 4, 2), (8, 16, 32)):
            yield f"13, batch {batch}", 64, [
                gpt_162b | dict(batch=batch, tensor=tensor, pipeline=64 // tensor) for tensor in path]
    gpt_6b = dict(layers=32, dim=3840, heads=32, microbatch=1)
    for batch in (32, 128, 512):
        yield f"14, batch {batch}", 64, [
            gpt_6b | dict(batch=batch, pipeline=n, data=64 // n) for n in (2, 4, 8, 16, 32)]
    for batch in (32, 128, 512):
        yield f"15, batch {batch}", 64, [
            gpt_6b | dict(batch=batch, tensor=n, data=64 // n) for n in (2, 4, 8, 16, 32)]
    gpt_91b = dict(layers=32, dim=15360, heads=128, tensor=8, pipeline=8)
    for batch in (128, 512):
        for path in ((2, 1), (2, 4, 8)):
            yield f"16, batch {batch}", 64, [gpt_91b | dict(batch=batch, microbatch=rows) for rows in path]
