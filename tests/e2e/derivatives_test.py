# SPDX-License-Identifier: Apache-2.0
"""Derivatives inside of a loss (derivatives.lua): figures against the same models in plain Python, whose derivatives
are closed forms or central differences; one digest on any number of ranks.

Arguments: the build tree.
"""
import math
import sys
import unittest

from program import HERE, orrery

SAMPLES, RATE, STEPS = 10, 0.02, 3


def waves(first, rows, width, scale):
    return [[scale * math.sin(first + i * width + j) for j in range(width)] for i in range(rows)]


REAL, FAKE = waves(1, SAMPLES, 3, 1), waves(50, SAMPLES, 3, 1.5)
MIX = [row[0] for row in waves(90, SAMPLES, 1, 0.5)]


def layer(inputs, outputs, first):
    return [v for row in waves(first, outputs, inputs, 0.7) for v in row] + waves(first + 200, 1, outputs, 0.3)[0]


def direction(first):
    return [v for rows in (waves(first, 4, 3, 0.2), waves(first + 20, 1, 4, 0.2), waves(first + 30, 1, 4, 0.2),
                           waves(first + 40, 1, 1, 0.2)) for row in rows for v in row]


def affine(p, at, x, outputs):
    """x through the layer whose weights [outputs, inputs] and bias begin at p[at]; and where the next one begins."""
    bias = at + outputs * len(x)
    return [sum(p[at + o * len(x) + i] * x[i] for i in range(len(x))) + p[bias + o] for o in range(outputs)], \
        bias + outputs


def slopes(f, p, h=1e-4):
    """Central differences, with the next term of the series (Richardson)."""
    found = []
    for i in range(len(p)):
        def at(d):
            return f(p[:i] + [p[i] + d] + p[i + 1:])
        one, two = (at(h) - at(-h)) / (2 * h), (at(2 * h) - at(-2 * h)) / (4 * h)
        found.append((4 * one - two) / 3)
    return found


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def critic(p, x):
    hidden, at = affine(p, 0, x, 4)
    return affine(p, at, [math.tanh(h) for h in hidden], 1)[0][0]


def critic_norm(p, x):
    """The norm of the critic's derivative by x: W1^T (w2 * (1 - tanh^2))."""
    hidden, at = affine(p, 0, x, 4)
    inside = [p[at + o] * (1 - math.tanh(h) ** 2) for o, h in enumerate(hidden)]
    return math.sqrt(sum(sum(p[o * 3 + i] * inside[o] for o in range(4)) ** 2 for i in range(3)))


class Penalty:
    start = layer(3, 4, 300) + layer(4, 1, 400)

    def results(self, p):
        norms = [critic_norm(p, [r * (m + 0.5) + f * (0.5 - m) for r, f in zip(real, fake)])
                 for real, fake, m in zip(REAL, FAKE, MIX)]
        loss = mean(critic(p, x) for x in FAKE) - mean(critic(p, x) for x in REAL) + \
            10 * mean((n - 1) ** 2 for n in norms)
        return {"loss": loss, "norm": mean(norms)}


class Smooth:
    start = layer(3, 4, 500) + waves(700, 1, 4, 1)[0] + [0.0] * 4 + layer(4, 3, 600)

    @staticmethod
    def surprise(p, x, target):
        h, at = affine(p, 0, x, 4)
        middle = mean(h)
        spread = 1 / math.sqrt(mean((v - middle) ** 2 for v in h) + 1e-5)
        h = [(v - middle) * spread * p[at + i] + p[at + 4 + i] for i, v in enumerate(h)]
        h = [0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))) for v in h]
        logits, _ = affine(p, at + 8, h, 3)
        log_sum = math.log(sum(math.exp(v) for v in logits))
        return -sum(t * t * (v - log_sum) for t, v in zip(target, logits))

    def results(self, p):
        slope = [s for x, t in zip(REAL, FAKE) for s in slopes(lambda y: self.surprise(p, y, t), x)]
        return {"loss": mean(self.surprise(p, x, t) for x, t in zip(REAL, FAKE)) + mean(s * s for s in slope),
                "bias": sum(s * s for s in slopes(self.moved_bias(p), [0.0] * 4))}

    def moved_bias(self, p):
        """The samples' sum with something added to the biases of layernorm, the parameters from 20 on."""
        return lambda d: sum(self.surprise(p[:20] + [b + s for b, s in zip(p[20:24], d)] + p[24:], x, t)
                             for x, t in zip(REAL, FAKE))


class Hessian:
    start = layer(3, 4, 300) + layer(4, 1, 400)
    u, v = direction(800), direction(900)

    def loss(self, p):
        return mean((critic(p, x) - m) ** 2 for x, m in zip(REAL, MIX))

    def moved(self, p, d):
        """The loss's slope along d at p."""
        return slopes(lambda s: self.loss([x + s[0] * y for x, y in zip(p, d)]), [0.0], 1e-3)[0]

    def results(self, p):
        slope = self.moved(p, self.u)
        curvature = slopes(lambda s: self.moved([x + s[0] * y for x, y in zip(p, self.v)], self.u), [0.0], 1e-3)[0]
        return {"loss": self.loss(p) + 0.1 * slope, "slope": slope, "curvature": curvature}


class Penalised(Hessian):
    def loss(self, p):
        bent = [math.tanh(w) for w in p[:12]] + p[12:]
        return super().loss(bent) + 0.1 * sum(w ** 3 for w in p[:12])

    def results(self, p):
        slope = self.moved(p, self.u)
        return {"loss": self.loss(p) + 0.1 * slope, "slope": slope}


class Sharpness(Hessian):
    def results(self, p):
        g = slopes(self.loss, p)
        norm = math.sqrt(dot(g, g))
        return {"loss": self.loss([x + 0.3 / norm * y for x, y in zip(p, g)]), "norm": norm}


CASES = {"penalty": Penalty(), "smooth": Smooth(), "hessian": Hessian(), "penalised": Penalised(), "sharpness": Sharpness()}


def trained(case):
    """The results of every step of gradient descent."""
    p, found = list(case.start), []
    for _ in range(STEPS):
        found.append(case.results(p))
        gradient = slopes(lambda q: case.results(q)["loss"], p, 1e-3)
        p = [x - RATE * g for x, g in zip(p, gradient)]
    return found


def run(ranks, *options):
    done = orrery("run", "-n", ranks, HERE / "derivatives.lua", *options)
    if done.code:
        raise AssertionError(done.err)
    return done.out


class Derivatives(unittest.TestCase):
    def follow(self, out, names, tolerance=2e-5):
        lines = out.splitlines()
        for name in names:
            case = CASES[name]
            mine = [line.split()[1:] for line in lines if line.startswith(name + ":")]
            for step, want in enumerate(trained(case)):
                got = dict(zip(mine[step][::2], map(float, mine[step][1::2])))
                for key, value in want.items():
                    with self.subTest(case=name, step=step, result=key):
                        self.assertAlmostEqual(got[key], value, delta=tolerance * max(1, abs(value)))

    def test_figures(self):
        self.follow(run(1), CASES)

    def test_one_digest(self):
        expected = run(1)
        self.assertEqual(len(expected.splitlines()), len(CASES) * (STEPS + 1))
        for options in ((), ("zero=1",), ("zero=2",), ("zero=3",), ("recompute=true",)):
            for ranks in (1, 2, 3, 4) if not options or options == ("zero=3",) else (3,):
                with self.subTest(ranks=ranks, options=options):
                    self.assertEqual(run(ranks, *options), expected)

    def test_one_digest_in_mixed_precision(self):
        expected = run(1, "precision=true")
        for ranks, *options in ((3,), (4, "zero=3")):
            with self.subTest(ranks=ranks, options=options):
                self.assertEqual(run(ranks, "precision=true", *options), expected)

    def test_layers_shared_out(self):
        for name in ("penalty", "hessian"):
            self.follow(run(4, "only=" + name, "tensor=2"), [name])

    def test_in_the_last_chunk_of_a_pipeline(self):
        expected = run(1, "only=late")
        for ranks in (2, 4):
            self.assertEqual(run(ranks, "only=late", "stages=2"), expected)

    def test_a_pipeline_is_refused(self):
        done = orrery("run", "-n", 2, HERE / "derivatives.lua", "only=penalty", "stages=2")
        self.assertNotEqual(done.code, 0)
        self.assertRegex(done.err, r"derivatives.lua:\d+: model.layers.1: a derivative inside of the loss goes from the "
                         "last chunk of the model, 2, back to chunk 1.*or train without chunks")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
