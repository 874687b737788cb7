-- SPDX-License-Identifier: Apache-2.0
--
-- Metrics have torchmetrics' definitions: figures of its functional accuracy, precision, recall and f1_score, worked out
-- by hand from the counts.
local orrery = require "orrery"
local metrics = orrery.metrics

local function near(a, b, what) assert(math.abs(a - b) < 1e-6, ("%s: %.9g, expected %.9g"):format(what, a, b)) end
local function of(name, options, scores, labels)
  local found = orrery.func(function(x, y) return metrics[name](x, y, options) end)(
    orrery.tensor(scores, "f32"), orrery.tensor(labels, "i64"))
  return #found.shape == 0 and found:item() or found:tolist()
end

-- Two classes by a threshold: 2 are rightly 1, 1 wrongly, 2 are not found, 3 are rightly 0.
local scores, labels = { 0.9, 0.4, 0.6, 0.5, 0.51, 0.1, 0.2, 0.3 }, { 1, 1, 1, 1, 0, 0, 0, 0 }
near(of("accuracy", {}, scores, labels), 5 / 8, "accuracy")
near(of("precision", {}, scores, labels), 2 / 3, "precision")
near(of("recall", {}, scores, labels), 2 / 4, "recall")
near(of("f1", {}, scores, labels), 4 / 7, "f1")
near(of("recall", { threshold = 0.35 }, scores, labels), 1, "recall")
near(of("precision", { threshold = 2 }, scores, labels), 0, "precision of nothing")
near(of("f1", { threshold = 2 }, scores, labels), 0, "f1 of nothing")

-- Five classes, of which 3 is neither there nor predicted, 4 is there, and 2 is only predicted.
local said, there = { 0, 0, 1, 2, 0, 1 }, { 0, 1, 1, 1, 4, 0 }
local rows = {}
for i, class in ipairs(said) do
  rows[i] = { 0.0, 0.0, 0.0, 0.0, 0.0 }
  rows[i][class + 1] = 2.5
end
local by_class = { precision = { 1 / 3, 1 / 2, 0, 0, 0 }, recall = { 1 / 2, 1 / 3, 0, 0, 0 }, f1 = { 2 / 5, 2 / 5, 0, 0, 0 } }
for name, wanted in pairs(by_class) do
  local sum = 0
  for c, value in ipairs(of(name, { average = "none" }, rows, there)) do
    near(value, wanted[c], name)
    sum = sum + wanted[c]
  end
  near(of(name, {}, rows, there), sum / 4, name)
  near(of(name, { average = "micro" }, rows, there), 2 / 6, name)
end
near(of("accuracy", {}, rows, there), 2 / 6, "accuracy")
near(of("accuracy", { ignore = 1 }, rows, there), 1 / 3, "accuracy")
near(of("f1", { ignore = 1, average = "micro" }, rows, there), 1 / 3, "f1")

-- Positions of two dims.
local two = { { { 1.0, 0.0 }, { 0.0, 1.0 } }, { { 1.0, 0.0 }, { 1.0, 0.0 } } }
near(of("accuracy", {}, two, { { 0, 1 }, { 1, -1 } }), 2 / 4, "accuracy")
near(of("f1", { ignore = -1 }, two, { { 0, 1 }, { 1, -1 } }), (2 / 3 + 2 / 3) / 2, "f1")
near(of("perplexity", { ignore = -1 }, two, { { 0, 1 }, { 1, -1 } }),
  math.exp((2 * (math.log(1 + math.exp(1)) - 1) + math.log(1 + math.exp(1))) / 3), "perplexity")

local function refused(part, ...)
  local ok, why = pcall(of, ...)
  assert(not ok and tostring(why):find(part, 1, true), tostring(why))
end
refused("give integers [...] and scores", "accuracy", {}, rows, { 0, 1 })
refused("give integers [...] and scores", "f1", {}, two, { 0, 1 })
refused("give \"macro\", \"micro\" or \"none\"", "f1", { average = "weighted" }, rows, there)
refused("unknown option 'averag'", "recall", { averag = "micro" }, rows, there)
