-- SPDX-License-Identifier: Apache-2.0
--
-- nn.switch against its definition, place by place, and against finite differences.
local orrery = require "orrery"
local nn = orrery.nn
orrery.seed(3)

local function near(a, b, what)
  assert(math.abs(a - b) <= 2e-5 * math.max(1, math.abs(b)), ("%s: %.8g, expected %.8g"):format(what, a, b))
end

local function softmax(row)
  local top, sum, p = math.max(table.unpack(row)), 0, {}
  for i, v in ipairs(row) do p[i] = math.exp(v - top) sum = sum + p[i] end
  for i in ipairs(p) do p[i] = p[i] / sum end
  return p, math.log(sum) + top
end

local function times(x, w) -- x [n], w [n][m]
  local y = {}
  for j = 1, #w[1] do
    y[j] = 0
    for i = 1, #x do y[j] = y[j] + x[i] * w[i][j] end
  end
  return y
end

local function relu(x)
  for i, v in ipairs(x) do x[i] = math.max(v, 0) end
  return x
end

-- The layer as the papers say it, with loops. x [batch][time][dim].
local function model(x, o, router, up, down)
  local out = { y = {}, dropped = 0, load = {}, balance = 0, z = 0 }
  for e = 1, o.experts do out.load[e] = 0 end
  local groups, routed = 0, 0
  for b, sample in ipairs(x) do
    out.y[b] = {}
    for first = 1, #sample, o.group do
      groups = groups + 1
      local p, room = {}, o.group
      if o.capacity then room = math.min(o.group, math.ceil(o.capacity * o.top * o.group / o.experts)) end
      local used, share, chance = {}, {}, {}
      for e = 1, o.experts do used[e], share[e], chance[e] = 0, 0, 0 end
      for t = first, first + o.group - 1 do
        local logits, lse = {}, nil
        for e = 1, o.experts do
          logits[e] = 0
          for d, v in ipairs(sample[t]) do logits[e] = logits[e] + router[e][d] * v end
        end
        p[t], lse = softmax(logits)
        out.z, routed = out.z + lse * lse, routed + 1
        out.y[b][t] = {}
        for d = 1, #sample[t] do out.y[b][t][d] = 0 end
        for e = 1, o.experts do chance[e] = chance[e] + p[t][e] / o.group end
      end
      local taken = {}
      for j = 1, o.top do
        for t = first, first + o.group - 1 do
          local order = {}
          for e = 1, o.experts do order[e] = e end
          table.sort(order, function(a, c) return p[t][a] > p[t][c] end)
          local e, gate = order[j], p[t][order[j]]
          local sum = 0
          for i = 1, o.top do sum = sum + p[t][order[i]] end
          if o.top > 1 then gate = gate / sum end
          if j == 1 then share[e] = share[e] + 1 / o.group end
          out.load[e] = out.load[e] + 1
          used[e] = used[e] + 1
          if used[e] > room then
            out.dropped = out.dropped + 1
          else
            taken[#taken + 1] = { t, e, gate }
          end
        end
      end
      for _, one in ipairs(taken) do
        local t, e, gate = table.unpack(one)
        local made = times(relu(times(sample[t], up[e])), down[e])
        for d, v in ipairs(made) do out.y[b][t][d] = out.y[b][t][d] + gate * v end
      end
      for e = 1, o.experts do out.balance = out.balance + o.experts * share[e] * chance[e] end
    end
  end
  out.loss = o.balance * out.balance / groups + o.z * out.z / routed
  return out
end

local function random(...)
  local dims = { ... }
  local function fill(at)
    local row = {}
    for i = 1, dims[at] do row[i] = at == #dims and math.random() * 2 - 1 or fill(at + 1) end
    return row
  end
  return fill(1)
end

math.randomseed(7)
for _, case in ipairs {
  { top = 1, capacity = 1.0, group = 8, experts = 3 }, { top = 1, capacity = 1.25, group = 4, experts = 4 },
  { top = 2, capacity = 1.0, group = 8, experts = 3 }, { top = 2, capacity = 0.5, group = 4, experts = 4 },
  { top = 1, capacity = 100, group = 2, experts = 2 }, { top = 3, capacity = 0.75, group = 8, experts = 5 },
  { top = 4, capacity = 0.5, group = 8, experts = 4 }, { top = 3, capacity = false, group = 8, experts = 5 },
} do
  local o = { top = case.top, capacity = case.capacity, group = case.group, experts = case.experts,
    hidden = 6, balance = 0.3, z = 0.2, act = nn.relu }
  local layer = nn.switch(4, o)
  local x = random(2, 8, 4)
  local batch = { x = x, w = random(2, 8, 4) }
  local function loss(b)
    local y, aux = layer(b.x)
    return (y * b.w):mean() + aux.loss, { y = y, aux = aux.loss, dropped = aux.dropped, load = aux.load }
  end
  local run = orrery.compile(loss, { params = layer, optimizer = orrery.optim.sgd { lr = 1.0 }, strategy = {} })
  local before = {}
  for _, name in ipairs { "router", "up", "down" } do
    before[name] = (name == "router" and layer.router.weight or layer[name]):read():tolist()
  end
  local want = model(x, o, before.router, before.up, before.down)
  local result = run:step(batch)
  local function value(name)
    local got = result:get(name)
    return type(got) == "number" and got or got:tolist()
  end
  near(value "aux", want.loss, "loss")
  near(value "dropped", want.dropped, "dropped")
  for e, n in ipairs(value "load") do near(n, want.load[e], "load") end
  for b, sample in ipairs(value "y") do
    for t, row in ipairs(sample) do
      for d, v in ipairs(row) do near(v, want.y[b][t][d], "y") end
    end
  end
  assert((want.dropped > 0) == (case.capacity and case.capacity < 100 or false), "dropped")

  -- The step was plain descent at rate 1: what moved is the gradient. The choices stay under a small change.
  local function total(p)
    local out, sum = model(x, o, p.router, p.up, p.down), 0
    for b, sample in ipairs(out.y) do
      for t, row in ipairs(sample) do
        for d, v in ipairs(row) do sum = sum + v * batch.w[b][t][d] end
      end
    end
    return sum / (2 * 8 * 4) + out.loss
  end
  local function slope(row, i)
    local kept, h = row[i], 1e-5
    row[i] = kept + h
    local above = total(before)
    row[i] = kept - h
    local below = total(before)
    row[i] = kept
    return (above - below) / (2 * h)
  end
  local after = { router = layer.router.weight:read():tolist(), up = layer.up:read():tolist(),
    down = layer.down:read():tolist() }
  for e = 1, o.experts do
    near(before.router[e][2] - after.router[e][2], slope(before.router[e], 2), "gradient of the router")
    near(before.up[e][3][1] - after.up[e][3][1], slope(before.up[e][3], 1), "gradient of up")
    near(before.down[e][2][4] - after.down[e][2][4], slope(before.down[e][2], 4), "gradient of down")
  end
end

-- A bias moves with the sign of what an expert's load lacks of the mean; it decides who is chosen, and not how much of
-- whom; an evaluation leaves it as it is.
do
  local layer = nn.switch(4, { experts = 4, top = 2, gated = true, score = "sigmoid", bias_rate = 0.25, hidden = 3, balance = 0 })
  local batch = { x = random(2, 8, 4) }
  local function loss(b)
    local y, aux = layer(b.x)
    return y:mean(), { load = aux.load }
  end
  local run = orrery.compile(loss, { params = layer, optimizer = orrery.optim.sgd { lr = 0 }, microbatches = 2 })
  local bias = { 0, 0, 0, 0 }
  for _ = 1, 6 do
    local load = run:step(batch):get("load"):tolist()
    for e, n in ipairs(load) do bias[e] = bias[e] + 0.25 * (n < 8 and 1 or n > 8 and -1 or 0) end
    assert(table.concat(layer.router.bias:read():tolist(), " ") == table.concat(bias, " "), "bias")
  end
  run:eval(orrery.data.arrays(batch), { size = 2 })
  assert(table.concat(layer.router.bias:read():tolist(), " ") == table.concat(bias, " "), "bias of an evaluation")
  local function outcome()
    return orrery.func(function(x)
      local y, aux = layer(x)
      return y, aux.load
    end)(batch.x)
  end
  layer.router.bias:write(orrery.tensor { 9.0, 9.0, 0.0, 0.0 })
  local y, load = outcome()
  assert(table.concat(load:tolist(), " ") == "16.0 16.0 0.0 0.0", "the bias chooses")
  layer.router.bias:write(orrery.tensor { 99.0, 99.0, 0.0, 0.0 })
  assert(orrery.engine.bytes((outcome())) == orrery.engine.bytes(y), "the bias is no weight")
end

local function refused(f, text)
  local ok, why = pcall(f)
  assert(not ok and tostring(why):find(text, 1, true), tostring(why))
end
refused(function() nn.switch(4, { top = 0 }) end, "top = 0: give an integer of at least 1")
refused(function() nn.switch(4, { capacity = 0 }) end, "capacity = 0: give a number above 0, or false for none")
refused(function() nn.switch(4, { score = "tanh" }) end, "score = 'tanh': give 'softmax' or 'sigmoid'")
refused(function() nn.switch(4, { n_group = 3 }) end, "n_group = 3 does not divide 8 experts")
refused(function() nn.switch(4, { n_group = 2, topk_group = 3 }) end, "topk_group = 3 of 2 groups of experts")
refused(function() nn.switch(4, { n_group = 4, top = 3 }) end, "topk_group = 1 leaves 2 experts, 3 wanted")
refused(function() nn.switch(4, { shared_gate = true }) end, "shared_gate is for shared experts: give shared = 1 or more")
refused(function() nn.switch(4, { experts = 1, top = 2 }) end, "1 experts, 2 wanted")
refused(function() orrery.func(function(x) return (nn.switch(4, { group = 3 })(x)) end)(random(1, 8, 4)) end,
  "groups of 3 do not divide a time of 8")
