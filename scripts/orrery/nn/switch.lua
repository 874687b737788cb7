-- SPDX-License-Identifier: Apache-2.0
--
--- nn.switch(dim, options)
--- A mixture of experts (Switch Transformer): each place of [batch, time, dim] goes to the `top` experts, two-layer
--- networks, that a router prefers. An expert takes `capacity` times its even share of a group of neighbouring
--- places; what is over that is dropped, so that the layer adds nothing to it. Returns y and a table: `loss` (add
--- it to the model's), `dropped` (choices that found no room, a sum) and `load` (choices of each expert, a sum).
---@param dim integer
---@param options? table
---@option experts integer=8
---@option hidden integer=nil width between an expert's layers; left out, 4 * dim
---@option top integer=1 experts of a place, 1 or 2
---@option capacity number=1.25 places of an expert, in even shares
---@option group integer=nil places that are routed together, a divisor of the time; left out, all of a sample
---@option balance number=0.01 weight of the loss that wants equal loads
---@option z number=0 weight of the loss that keeps the router's logits small
---@option act fun(x):orrery.Tensor=nn.gelu between an expert's layers
---@return orrery.Module

-- Fedus, Zoph, Shazeer, "Switch Transformers", JMLR 2022 (arXiv:2101.03961): router in f32, capacity, balance loss.
-- Groups and two experts: Lepikhin et al., "GShard" (arXiv:2006.16668); z-loss: Zoph et al., "ST-MoE" (arXiv:2202.08906).
local _, orrery = ...
local nn = orrery.nn

-- Sums of x up to and with each index of a dim of n, exact for counts.
local function running(x, dim, n)
  local step = 1
  while step < n do
    x = x + orrery.concat({ x:slice(dim, 1, step) * 0, x:slice(dim, 1, n - step) }, dim)
    step = step * 2
  end
  return x
end

local function check(o, shape)
  if #shape ~= 3 then orrery.fail(("switch: x is %s, expected [batch, time, dim]"):format(tostring(shape))) end
  local group = o.group or shape[2]
  if group < 1 or shape[2] % group ~= 0 then
    orrery.fail(("switch: groups of %d do not divide a time of %d"):format(group, shape[2]))
  end
  return group
end

-- Of each choice [batch, groups, places]: the expert's number, one-hot in f32, and its probability.
local function choices(p, o)
  local left, found = p:stop_gradient(), {}
  local experts = orrery.iota(o.experts)
  for j = 1, o.top do
    local index = left:argmax()
    local hot = index:reshape(index.shape[1], index.shape[2], index.shape[3], 1):eq(experts):cast "f32"
    found[j] = { index = index, hot = hot, gate = (p * hot):sum(-1) }
    left = left - hot * 2
  end
  return found
end

-- The slot of each choice among experts * room, -1 where there is none; first choices come first.
local function slots(found, room, places)
  local before
  for _, choice in ipairs(found) do
    local at = running(choice.hot, 3, places) - choice.hot
    if before then at = at + before end
    at = (at * choice.hot):sum(-1)
    local count = choice.hot:sum(3, { keep = true })
    before = before and before + count or count
    local fits = at:lt(room)
    choice.dropped = 1 - fits:cast "f32"
    choice.slot = fits:select(choice.index:cast "f32" * room + at, -1)
  end
end

return nn.module("switch", function(m, dim, options)
  local o = orrery.options("switch", options, {
    experts = 8, hidden = 4 * dim, top = 1, capacity = 1.25, group = false, balance = 0.01, z = 0, act = nn.gelu,
  })
  if o.top ~= 1 and o.top ~= 2 then orrery.fail(("switch: top = %s: give 1 or 2"):format(tostring(o.top))) end
  if o.experts < o.top then orrery.fail(("switch: %d experts, %d wanted"):format(o.experts, o.top)) end
  local function matrices(inputs, outputs)
    local bound = 1 / math.sqrt(inputs)
    return orrery.parameter({ o.experts, inputs, outputs }, { init = nn.init.uniform(-bound, bound) })
  end
  m.router = nn.linear(dim, o.experts, { bias = false })
  m.up, m.down = matrices(dim, o.hidden), matrices(o.hidden, dim)

  return function(x)
    local batch, time = x.shape[1], x.shape[2]
    local places = check(o, x.shape)
    local groups, E = time // places, o.experts
    local room = math.min(places, math.max(1, math.ceil(o.capacity * o.top * places / E)))
    local tokens = x:reshape(batch, groups, places, dim)
    local logits = m.router(tokens:cast "f32")
    local p = logits:softmax()
    local found = choices(p, o)
    slots(found, room, places)

    local all = orrery.iota(E * room):cast "f32"
    local total = found[1].gate
    if o.top == 2 then total = total + found[2].gate end
    local sent, weighted
    for j, choice in ipairs(found) do
      local mine = choice.slot:reshape(batch, groups, places, 1):eq(all):cast "f32"
      local gate = o.top == 2 and choice.gate / total or choice.gate
      local scaled = mine * gate:reshape(batch, groups, places, 1)
      sent, weighted = j == 1 and mine or sent + mine, j == 1 and scaled or weighted + scaled
    end
    local function by_expert(t) -- [batch, groups, E * room, d] as [E, all places, d]
      return t:reshape(batch, groups, E, room, dim):permute(3, 1, 2, 4, 5):reshape(E, batch * groups * room, dim)
    end
    local taken = by_expert(sent:cast(x.dtype):matmul(tokens, { transpose_a = true }))
    local made = o.act(taken:matmul(m.up:cast(x.dtype))):matmul(m.down:cast(x.dtype))
    made = made:reshape(E, batch, groups, room, dim):permute(2, 3, 1, 4, 5):reshape(batch, groups, E * room, dim)
    local y = weighted:cast(x.dtype):matmul(made):reshape(batch, time, dim)

    -- Mean over groups of E * sum of (share of first choices) * (mean probability).
    local share, chance = found[1].hot:mean(3):stop_gradient(), p:mean(3)
    local loss = (share * chance):sum(-1):mean() * (o.balance * E)
    if o.z > 0 then
      local top = logits:max(-1, { keep = true }):stop_gradient()
      local lse = ((logits - top):exp():sum(-1, { keep = true })):log() + top
      loss = loss + (lse * lse):mean() * o.z
    end
    local dropped, load = found[1].dropped:sum(), found[1].hot:sum { 1, 2, 3 }
    if o.top == 2 then dropped, load = dropped + found[2].dropped:sum(), load + found[2].hot:sum { 1, 2, 3 } end
    return y, { loss = loss, dropped = dropped, load = load }
  end
end)
