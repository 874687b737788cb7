-- SPDX-License-Identifier: Apache-2.0
--
--- nn.switch(dim, options)
--- A mixture of experts: each place of [batch, time, dim] goes to the `top` experts, small networks of two layers or
--- gated ones, that a router prefers. An expert takes `capacity` times its even share of a group of neighbouring places;
--- what is over that is dropped, so that the layer adds nothing to it. Without a capacity nothing is dropped, and an
--- expert computes the places that chose it, however many. Returns y and a table: `loss` (add it to the model's), `dropped` (choices that found no
--- room, a sum) and `load` (choices of each expert, a sum). Of the defaults it is a Switch Transformer; docs/strategies/expert.md
--- has Mixtral, Grok, Qwen3 and DeepSeek in a line each.
---@param dim integer
---@param options? table
---@option experts integer=8
---@option hidden integer=nil width between an expert's layers; left out, 4 * dim
---@option top integer=1 experts of a place
---@option capacity number|boolean=1.25 places of an expert, in even shares; false: as many as come
---@option group integer=nil places that are routed together, a divisor of the time; left out, all of a sample
---@option gated boolean=false down(act(gate(x)) * up(x)) instead of down(act(up(x)))
---@option act fun(x):orrery.Tensor=nn.gelu between an expert's layers; of gated ones nn.silu
---@option shared integer=0 experts that every place goes to, beside those chosen
---@option shared_gate boolean=false whether a sigmoid of each place weighs what these make
---@option score string='softmax' of the router's logits, or 'sigmoid'
---@option normalize boolean=nil whether the weights of a place's experts sum up to 1; left out, if these are several
---@option scale number=1 of the weights
---@option bias_rate number|boolean=false a bias for the choice of each expert, which moves so far in a step as its load is
--- below or above the mean of all; 0 for one that stays
---@option n_group integer=1 groups of experts, of which
---@option topk_group integer=1 so many best ones are open to a place
---@option balance number=0.01 weight of the loss that wants equal loads
---@option balance_over string='first' choices of a place that this loss counts: 'first' or 'all'
---@option z number=0 weight of the loss that keeps the router's logits small
---@return orrery.Module

-- Fedus, Zoph, Shazeer, "Switch Transformers", JMLR 2022 (arXiv:2101.03961): router in f32, capacity, balance loss.
-- Groups and two experts: Lepikhin et al., "GShard" (arXiv:2006.16668); z-loss: Zoph et al., "ST-MoE" (arXiv:2202.08906);
-- shared experts, groups of experts, the bias: DeepSeek-AI, "DeepSeek-V3" (arXiv:2412.19437).
local _, orrery = ...
local nn = orrery.nn
local checked = require "orrery.switch_options"
local join = require "orrery.nn.spatial".join

local function check(o, shape)
  if #shape ~= 3 then orrery.fail(("switch: x is %s, expected [batch, time, dim]"):format(tostring(shape))) end
  local group = o.group or shape[2]
  if group < 1 or shape[2] % group ~= 0 then
    orrery.fail(("switch: groups of %d do not divide a time of %d"):format(group, shape[2]))
  end
  return group
end

-- The slot of each choice [..., experts, places] among its expert's `room`; -1 where there is none. First choices come
-- first, and of these the first places. Also how many choices have none.
local function slots(hot, room)
  local dims = hot.shape
  local rank, places = #dims, dims[#dims]
  local at = orrery.iota(places)
  local earlier = at:reshape(places, 1):lt(at):cast "f32"
  local before = hot:flatten(-3, -2):matmul(earlier):reshape(dims)
  if dims[rank - 2] > 1 then
    local count = hot:sum(-1, { keep = true })
    before = before + (count:cumsum(rank - 2) - count)
  end
  local position, chosen = (before * hot):sum(-3), hot:sum(-3)
  local fits = position:lt(room):logical_and(chosen:gt(0))
  return fits:select(position, -1), chosen:sum() - fits:cast("f32"):sum()
end

-- What experts make of their tokens; times(x, matrices) is their product.
local function computed(m, o, tokens, times)
  local h = o.gated and o.act(times(tokens, m.gate)) * times(tokens, m.up) or o.act(times(tokens, m.up))
  return times(h, m.down)
end

-- The dims of experts [..., experts, room, dim] in front of all others, and behind `lead` ones again.
local function orders(lead)
  local first, again = { lead + 1 }, {}
  for i = 1, lead do first[i + 1], again[i] = i, i + 1 end
  return join(first, lead + 2, lead + 3), join(again, 1, lead + 2, lead + 3)
end

-- Tokens in slots of experts and back, by products with one-hot rows. Returns y and the number of choices dropped.
local function with_room(m, o, tokens, hot, gates)
  local rank, E = #tokens.shape, o.experts
  local places, dim = tokens.shape[rank - 1], tokens.shape[rank]
  local room = math.min(places, math.max(1, math.ceil(o.capacity * o.top * places / E)))
  local slot, dropped = slots(hot, room)
  local all = orrery.iota(room):cast("f32"):reshape(room, 1)
  local sent = slot:unsqueeze(rank):eq(all):cast "f32" -- [..., experts, room, places]
  local weighted = sent * gates:transpose():unsqueeze(rank)
  local function rows(t) return t:flatten(-3, -2):cast(tokens.dtype) end
  local lead = { table.unpack(tokens.shape, 1, rank - 2) }
  local first, again = orders(#lead)
  local taken = rows(sent):matmul(tokens):reshape(join(lead, E, room, dim)):permute(first)
  local function times(x, matrices) return x:matmul(matrices:cast(x.dtype)) end
  local made = computed(m, o, taken:reshape(E, -1, dim), times):reshape(taken.shape):permute(again)
  return rows(weighted):matmul(made:flatten(-3, -2), { transpose_a = true }), dropped
end

-- Tokens through the experts of their choices alone, [..., places, top] of them, which each place adds up.
local function without_limit(m, o, tokens, hot, gates, index)
  local rank, dim = #tokens.shape, tokens.shape[#tokens.shape]
  local function times(x, matrices) return x:gather_matmul(matrices:cast(x.dtype), index) end
  local made = computed(m, o, tokens:unsqueeze(-2):broadcast(join(index.shape, dim)), times)
  local weights = (hot * gates:transpose():unsqueeze(rank - 1)):sum(-2):transpose():cast(tokens.dtype)
  return (made * weights:unsqueeze(-1)):sum(-2)
end

-- Experts that every place goes to are one network of their width together.
local Shared = nn.module("shared", function(m, dim, o)
  local hidden = o.shared * o.hidden
  local function linear(inputs, outputs) return nn.linear(inputs, outputs, { bias = false }) end
  if o.gated then m.gate = linear(dim, hidden) end
  m.up, m.down = linear(dim, hidden), linear(hidden, dim)
  return function(x) return m.down(o.gated and o.act(m.gate(x)) * m.up(x) or o.act(m.up(x))) end
end)

return nn.module("switch", function(m, dim, options)
  local o = checked(dim, options)
  local function matrices(inputs, outputs)
    local bound = 1 / math.sqrt(inputs)
    return orrery.parameter({ o.experts, inputs, outputs }, { init = nn.init.uniform(-bound, bound) })
  end
  m.router = require "orrery.switch_router" (dim, o)
  if o.gated then m.gate = matrices(dim, o.hidden) end
  m.up, m.down = matrices(dim, o.hidden), matrices(o.hidden, dim)
  if o.shared > 0 then m.shared = Shared(dim, o) end
  if o.shared_gate then m.shared_gate = nn.linear(dim, 1, { bias = false }) end

  return function(x)
    local places = check(o, x.shape)
    local tokens = places == x.shape[2] and x or x:reshape(x.shape[1], x.shape[2] // places, places, dim)
    local hot, gates, load, loss, index = m.router(tokens)
    local y, dropped
    if o.capacity then
      y, dropped = with_room(m, o, tokens, hot, gates)
    else
      y, dropped = without_limit(m, o, tokens, hot, gates, index), load:sum() * 0
    end
    y = y:reshape(x.shape)
    if o.shared_gate then
      y = y + m.shared_gate(x):sigmoid() * m.shared(x)
    elseif o.shared > 0 then
      y = y + m.shared(x)
    end
    return y, { loss = loss, dropped = dropped, load = load }
  end
end)
