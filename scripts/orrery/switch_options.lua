-- SPDX-License-Identifier: Apache-2.0
--
-- The options of nn.switch, checked.
local _, orrery = ...
local nn = orrery.nn

local function refuse(text, ...) orrery.fail("switch: " .. text:format(...)) end

local function one_of(o, name, first, second)
  if o[name] ~= first and o[name] ~= second then
    refuse("%s = '%s': give '%s' or '%s'", name, tostring(o[name]), first, second)
  end
end

local function count(o, name, least)
  if math.type(o[name]) ~= "integer" or o[name] < least then
    refuse("%s = %s: give an integer of at least %d", name, tostring(o[name]), least)
  end
end

local function check_groups(o)
  count(o, "n_group", 1)
  count(o, "topk_group", 1)
  if o.experts % o.n_group ~= 0 then refuse("n_group = %d does not divide %d experts", o.n_group, o.experts) end
  if o.topk_group > o.n_group then refuse("topk_group = %d of %d groups of experts", o.topk_group, o.n_group) end
  local left = o.topk_group * (o.experts // o.n_group)
  if left < o.top then refuse("topk_group = %d leaves %d experts, %d wanted", o.topk_group, left, o.top) end
end

return function(dim, given)
  local o = orrery.options("switch", given, {
    experts = 8, hidden = 4 * dim, top = 1, capacity = 1.25, group = false, gated = false, act = false, shared = 0,
    shared_gate = false, score = "softmax", normalize = "", scale = 1, bias_rate = false, n_group = 1, topk_group = 1,
    balance = 0.01, balance_over = "first", z = 0,
  })
  count(o, "experts", 1)
  count(o, "top", 1)
  count(o, "shared", 0)
  if o.experts < o.top then refuse("%d experts, %d wanted", o.experts, o.top) end
  if o.capacity and not (type(o.capacity) == "number" and o.capacity > 0) then
    refuse("capacity = %s: give a number above 0, or false for none", tostring(o.capacity))
  end
  one_of(o, "score", "softmax", "sigmoid")
  one_of(o, "balance_over", "first", "all")
  check_groups(o)
  if o.shared_gate and o.shared == 0 then refuse "shared_gate is for shared experts: give shared = 1 or more" end
  if o.normalize == "" then o.normalize = o.top > 1 end
  o.act = o.act or (o.gated and nn.silu or nn.gelu)
  return o
end
