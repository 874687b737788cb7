-- SPDX-License-Identifier: Apache-2.0
--
-- Losses for layers.lua: name, loss, the first input's dims, the result's, further inputs. loss_cases.py has the same.
local logits, real, unit = { 3, 2, 5 }, { { { 3, 4 }, "real" } }, { { { 3, 4 }, "unit" } }
local labels, soft = { { { 3, 2 }, "classes", 5 } }, { { { 3, 2, 5 }, "unit" } }
local classed = { labels[1], { { 5 }, "weights" } }
local weighted = { labels[1], { { 3, 2 }, "unit" } }
local rows = { { { 5, 4 }, "real" }, { { 5, 4 }, "real" } }

local function classes(options)
  return function(nn) return function(x, y) return nn.cross_entropy(x, y, options) end end
end
local function of_classes(options, name)
  return function(nn)
    return function(x, y, w)
      local all = { class_weights = w }
      for option, value in pairs(options or {}) do all[option] = value end
      return nn[name or "cross_entropy"](x, y, all)
    end
  end
end
-- Of logits, labels that repeat themselves, and lengths of both; what is behind an end does not count.
local sequences = { 4, 6, 5 }
local function ctc(options, rows, times, counts)
  return {
    function(nn)
      return function(x, y, a, b) return nn.ctc(nn.log_softmax(x), y, a, b, options) end
    end, sequences, options.reduction == "none" and { 4 } or {},
    { { { 4, 3 }, "given", rows }, { { 4 }, "given", times }, { { 4 }, "given", counts } },
  }
end
local function named(name, case) return { name, table.unpack(case) } end
local function pair(name, options)
  return function(nn) return function(x, y) return nn[name](x, y, options) end end
end
local function of_probabilities(options)
  return function(nn) return function(x, y) return nn.bce(x:sigmoid(), y, options) end end
end
local function triplet(options)
  return function(nn) return function(a, b, c) return nn.triplet(a, b, c, options) end end
end

return {
  { "mse sum", pair("mse", { reduction = "sum" }), { 3, 4 }, {}, real },
  { "mse none", pair("mse", { reduction = "none" }), { 3, 4 }, { 3, 4 }, real },
  { "l1", pair "l1", { 3, 4 }, {}, real },
  { "l1 none", pair("l1", { reduction = "none" }), { 3, 4 }, { 3, 4 }, real },
  { "smooth l1", pair "smooth_l1", { 3, 4 }, {}, real },
  { "smooth l1 beta", pair("smooth_l1", { beta = 0.3, reduction = "sum" }), { 3, 4 }, {}, real },
  { "smooth l1 zero", pair("smooth_l1", { beta = 0, reduction = "none" }), { 3, 4 }, { 3, 4 }, real },
  { "huber", pair "huber", { 3, 4 }, {}, real },
  { "huber delta", pair("huber", { delta = 2.5, reduction = "none" }), { 3, 4 }, { 3, 4 }, real },
  { "bce", of_probabilities(), { 3, 4 }, {}, unit },
  { "bce none", of_probabilities { reduction = "none" }, { 3, 4 }, { 3, 4 }, unit },
  { "bce with logits", pair "bce_with_logits", { 3, 4 }, {}, unit },
  { "bce with logits weighed", function(nn)
    return function(x, y, w) return nn.bce_with_logits(x, y, { pos_weight = w, reduction = "none" }) end
  end, { 3, 4 }, { 3, 4 }, { unit[1], { { 4 }, "unit" } } },
  { "kl div", pair "kl_div", { 3, 4 }, {}, unit },
  { "kl div batchmean", pair("kl_div", { reduction = "batchmean" }), { 3, 4 }, {}, unit },
  { "kl div logs", pair("kl_div", { reduction = "none", log_target = true }), { 3, 4 }, { 3, 4 }, real },
  { "nll", pair "nll", logits, {}, labels },
  { "nll ignore", pair("nll", { ignore = 3 }), logits, {}, labels },
  { "nll none", pair("nll", { ignore = 3, reduction = "none" }), logits, { 3, 2 }, labels },
  { "nll weighed", function(nn)
    return function(x, y, w) return nn.nll(x, y, { weights = w, ignore = 0 }) end
  end, logits, {}, weighted },
  { "cross entropy", classes(), logits, {}, labels },
  { "cross entropy sum", classes { ignore = 3, reduction = "sum" }, logits, {}, labels },
  { "cross entropy none", classes { ignore = 3, reduction = "none" }, logits, { 3, 2 }, labels },
  { "cross entropy smooth", classes { label_smoothing = 0.2, ignore = 0 }, logits, {}, labels },
  { "cross entropy smooth none", classes { label_smoothing = 0.1, reduction = "none" }, logits, { 3, 2 }, labels },
  { "cross entropy weighed", function(nn)
    return function(x, y, w) return nn.cross_entropy(x, y, { weights = w, ignore = 0, label_smoothing = 0.1 }) end
  end, logits, {}, weighted },
  { "cross entropy weighed classes", function(nn)
    return function(x, y, w) return nn.cross_entropy(x, y, { weights = w:take(y) }) end
  end, logits, {}, { labels[1], { { 5 }, "unit" } } },
  { "cross entropy class weights", of_classes(), logits, {}, classed },
  { "cross entropy class weights smooth", of_classes { label_smoothing = 0.2, ignore = 3 }, logits, {}, classed },
  { "cross entropy class weights sum", of_classes { reduction = "sum", ignore = 0 }, logits, {}, classed },
  { "cross entropy class weights none", of_classes { reduction = "none", label_smoothing = 0.1 }, logits, { 3, 2 }, classed },
  { "cross entropy class weights soft", of_classes(), logits, {}, { soft[1], { { 5 }, "weights" } } },
  { "nll class weights", of_classes({ ignore = 3 }, "nll"), logits, {}, classed },
  { "nll class weights none", of_classes({ reduction = "none" }, "nll"), logits, { 3, 2 }, classed },
  { "cross entropy soft", classes(), logits, {}, soft },
  { "cross entropy soft smooth", classes { label_smoothing = 0.3, reduction = "none" }, logits, { 3, 2 }, soft },
  { "cross entropy soft sum", classes { reduction = "sum" }, logits, {}, soft },
  named("ctc", ctc({}, { { 1, 2, 2 }, { 3, 1, 4 }, { 2, 0, 0 }, { 1, 1, 1 } }, { 6, 5, 4, 6 }, { 3, 3, 1, 2 })),
  named("ctc none", ctc({ reduction = "none", blank = 4 }, { { 0, 0, 0 }, { 3, 1, 2 }, { 2, 1, 1 }, { 3, 3, 3 } }, { 6, 3, 4, 1 },
    { 3, 3, 0, 1 })),
  named("ctc sum", ctc({ reduction = "sum", blank = 2 }, { { 0, 1, 0 }, { 4, 4, 2 }, { 3, 0, 0 }, { 1, 3, 1 } }, { 3, 4, 6, 5 },
    { 3, 2, 1, 3 })),
  named("ctc zero infinity", ctc({ zero_infinity = true }, { { 1, 1, 1 }, { 1, 2, 3 }, { 4, 4, 1 }, { 2, 1, 1 } }, { 4, 2, 6, 6 },
    { 3, 3, 3, 1 })),
  { "cosine embedding", function(nn)
    return function(a, b, y) return nn.cosine_embedding(a, b, y, { margin = 0.2 }) end
  end, { 5, 4 }, {}, { { { 5, 4 }, "real" }, { { 5 }, "signs" } } },
  { "cosine embedding none", function(nn)
    return function(a, b, y) return nn.cosine_embedding(a, b, y, { reduction = "none" }) end
  end, { 5, 4 }, { 5 }, { { { 5, 4 }, "real" }, { { 5 }, "signs" } } },
  { "triplet", triplet(), { 5, 4 }, {}, rows },
  { "triplet none", triplet { margin = 3, reduction = "none" }, { 5, 4 }, { 5 }, rows },
  { "triplet swap", triplet { margin = 2, swap = true, reduction = "sum" }, { 5, 4 }, {}, rows },
  { "triplet of one", triplet { margin = 4, p = 1, reduction = "none" }, { 5, 4 }, { 5 }, rows },
  { "triplet of three", triplet { margin = 4, p = 3, reduction = "none" }, { 5, 4 }, { 5 }, rows },
}
