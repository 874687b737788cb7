-- SPDX-License-Identifier: Apache-2.0
--
-- The router of nn.switch: which experts a place goes to, and with what weights. All of it is in f32, in mixed
-- precision too, since strategy.precision leaves modules of this name as they are.
local _, orrery = ...
local nn = orrery.nn
local join = require "orrery.nn.spatial".join

-- Scores [..., experts] of which those outside of the `topk_group` best groups of experts are -inf. A group's score is
-- that of its best expert, or for sigmoids the sum of its two best (DeepSeek-V2, V3).
local function limited(s, o)
  local lead, n = { table.unpack(s.shape, 1, #s.shape - 1) }, o.n_group
  local of = s:reshape(join(lead, n, o.experts // n))
  local best = of:topk(math.min(o.score == "sigmoid" and 2 or 1, o.experts // n))
  local _, index = best:sum(-1):topk(o.topk_group)
  local kept = index:reshape(join(lead, o.topk_group, 1)):eq(orrery.iota(n)):any(-2)
  return kept:reshape(join(lead, n, 1)):select(of, -math.huge):reshape(s.shape)
end

-- Of groups of places, the mean over them of experts * sum of (share of choices) * (mean probability).
local function balance(hot, p, o)
  if o.score == "sigmoid" then p = p / p:sum(-1, { keep = true }) end
  local counted = o.balance_over == "first" and hot:slice(-3, 1, 1) or hot
  local share = counted:sum(-3):mean(-1):stop_gradient()
  return (share * p:mean(-2)):sum(-1):mean() * (o.balance * o.experts)
end

-- The mean square of the log-sum-exp of logits.
local function spread(logits)
  local top = logits:max(-1, { keep = true }):stop_gradient()
  local lse = ((logits - top):exp():sum(-1, { keep = true })):log() + top
  return (lse * lse):mean()
end

-- Weights of the chosen experts, and zeros. Without these sums the router would learn nothing of sizes.
local function weights(p, chosen, o)
  local gates = p * chosen
  if o.normalize then
    local total = gates:sum(-1, { keep = true })
    gates = gates / (o.score == "sigmoid" and total + 1e-20 or total)
  end
  return o.scale ~= 1 and gates * o.scale or gates
end

-- Called with places [..., places, dim]; returns choices [..., top, experts, places] as zeros and ones, weights
-- [..., places, experts], how many choices each expert has, over the batch, the loss, and the choices as numbers of
-- experts [..., places, top].
return nn.module("router", function(m, dim, o)
  local dims = { o.experts, dim }
  m.weight = orrery.parameter(dims, { init = nn.init.fan_in(dims) })
  if o.bias_rate then m.bias = orrery.buffer(o.experts, { init = nn.init.zeros }) end

  return function(tokens)
    local rank = #tokens.shape
    local logits = tokens:cast("f32"):matmul(m.weight, { transpose_b = true })
    local p = o.score == "sigmoid" and logits:sigmoid() or logits:softmax()
    local wanted = p:stop_gradient()
    if o.bias_rate then wanted = wanted + m.bias end
    if o.n_group > 1 then wanted = limited(wanted, o) end
    local _, index = wanted:topk(o.top)
    local hot = index:transpose():unsqueeze(rank):eq(orrery.iota(o.experts):reshape(o.experts, 1)):cast "f32"
    local chosen = hot:sum(-3):transpose()
    local load = chosen:flatten(1, rank - 1):sum(1)
    if o.bias_rate and orrery.training() then
      m.bias:update(m.bias:updated() + (load:mean() - load):sign() * o.bias_rate)
    end
    local loss = balance(hot, p, o)
    if o.z > 0 then loss = loss + spread(logits) * o.z end
    return hot, weights(p, chosen, o), load, loss, index
  end
end)
