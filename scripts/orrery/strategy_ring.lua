-- SPDX-License-Identifier: Apache-2.0
--
-- Attention of sequences that are cut over the ranks of an axis: keys and values travel round the ring of ranks, each
-- rank's queries meet one part of them after the other, and what comes of it is merged by the log-sum-exp of scores.
-- In backward they travel again, and with them their gradients.
local _, orrery = ...
local zigzag = require "orrery.strategy_zigzag"

-- Liu, Zaharia, Abbeel, "Ring Attention with Blockwise Transformers", 2023 (arXiv:2310.01889).
local Ring = {}
Ring.__index = Ring

local function flat(x) return x:reshape(x.shape[1], x.shape[2] * x.shape[3], x.shape[4]) end

-- An op on parts; a mask holds within the queries and keys of one part.
function Ring:op(kind, inputs, within)
  local a = self.attributes
  return self.draft:op(kind, inputs, { causal = within and a.causal or 0, heads = a.heads, kv_heads = a.kv_heads, scale = a.scale })
end

-- o as [batch, halves, places, heads, depth], and the log-sum-exp of each row of scores as [.., heads, 1].
function Ring:attend(q, k, v, within)
  local batch, halves, places, width = table.unpack(q.shape)
  local heads = self.attributes.heads
  local o, lse = self:op("attention", { flat(q), flat(k), flat(v) }, within)
  lse = lse:reshape(batch, heads, halves, places):permute(1, 3, 4, 2):reshape(batch, halves, places, heads, 1)
  return o:reshape(batch, halves, places, heads, width // heads):cast(lse.dtype), lse
end

-- Attention to all keys, of which each {o, lse} is that to some.
local function merged(found)
  local top = found[1][2]
  for i = 2, #found do top = top:maximum(found[i][2]) end
  local total, sum = 0, 0
  for _, one in ipairs(found) do
    local weight = (one[2] - top):exp()
    total, sum = weight + total, one[1] * weight + sum
  end
  return sum / total, top + total:log()
end

function Ring:next(x) return x:ppermute(self.axis) end

function Ring:forward(q, k, v)
  local parts = self.parts
  local o, lse = self:attend(q, k, v, true)
  for hop = 1, parts.ranks - 1 do
    k, v = self:next(k), self:next(v)
    local found = { { o, lse } }
    for _, pair in ipairs(parts:pairs(hop)) do
      local part, row = self:attend(parts:pick(q, pair[1]), parts:pick(k, pair[2]), parts:pick(v, pair[2]))
      found[#found + 1] = { part, parts:put(row, pair[1], -1e30) } -- a weight of 0 in the other half
    end
    o, lse = merged(found)
  end
  return o:reshape(table.unpack(q.shape)):cast(q.dtype), lse
end

-- What the queries here and these keys and values add to the gradients; o and lse are those of all keys.
function Ring:slopes(dy, q, k, v, o, lse, within)
  local batch, halves, places = table.unpack(q.shape)
  local rows = lse:permute(1, 4, 2, 3, 5):reshape(batch, self.attributes.heads, halves * places)
  local dq, dk, dv = self:op("attention_grad", { flat(dy), flat(q), flat(k), flat(v), flat(o), rows }, within)
  return dq:reshape(table.unpack(q.shape)), dk:reshape(table.unpack(k.shape)), dv:reshape(table.unpack(v.shape))
end

function Ring:backward(dy, q, k, v, o, lse)
  local parts = self.parts
  local dq, dk, dv = self:slopes(dy, q, k, v, o, lse, true)
  local gk, gv = 0, 0 -- of the keys and values that are here now, by the ranks that they have been to
  for hop = 1, parts.ranks - 1 do
    k, v = self:next(k), self:next(v)
    if hop > 1 then gk, gv = self:next(gk), self:next(gv) end
    for _, pair in ipairs(parts:pairs(hop)) do
      local function mine(x) return parts:pick(x, pair[1]) end
      local a, b, c = self:slopes(mine(dy), mine(q), parts:pick(k, pair[2]), parts:pick(v, pair[2]), mine(o), mine(lse))
      dq = dq + parts:put(a, pair[1], 0)
      gk, gv = parts:put(b, pair[2], 0) + gk, parts:put(c, pair[2], 0) + gv
    end
  end
  return dq, dk + self:next(gk), dv + self:next(gv)
end

local M = {}

local function check(who, o, attributes, ranks, tensors)
  local parts = attributes.causal == 1 and 2 * ranks or ranks
  if #tensors % 3 == 1 or attributes.window then
    orrery.fail(("%s: kind 'ring' has no place for a mask, bias, window or offset of attention, as that of '%s' (%s) has: "
      .. "give kind = 'gathered' or 'ulysses'"):format(who, o.region, o.line))
  end
  if (attributes.dropout or 0) > 0 then
    orrery.fail(("%s: kind 'ring' cannot drop out weights of attention, as that of '%s' (%s) does with dropout = %g: set it "
      .. "to 0, or give kind = 'ulysses'"):format(who, o.region, o.line, attributes.dropout))
  end
  for _, x in ipairs(tensors) do
    if x.shape[2] % parts ~= 0 then
      orrery.fail(("%s: the sequence of %d that the attention of '%s' (%s) reads does not divide into the %d chunks that kind "
        .. "'ring' on %d ranks needs: choose a multiple of %d, or kind = 'gathered'"):format(who, x.shape[2], o.region, o.line,
        parts, ranks, parts))
    end
  end
end

-- The ops of attention and its gradient, in the program's order, each as its outputs.
local function attentions(draft)
  local known, found = {}, {}
  for _, value in ipairs(draft:values "activation") do
    if value.op == "attention" or value.op == "attention_grad" then
      if not known[value.maker] then
        known[value.maker] = {}
        found[#found + 1] = known[value.maker]
      end
      known[value.maker][value.output] = value
    end
  end
  return found
end

-- Replaces attention, forward and backward. Under a causal mask there must be as many queries as keys.
function M.replace(draft, who, axis, ranks)
  local forward = {} -- by the number of its log-sum-exp: what backward reads
  for _, out in ipairs(attentions(draft)) do
    local inputs, tensors, attributes = draft:inputs(out[1]), {}, draft:maker(out[1]).attributes
    for i, id in ipairs(inputs) do tensors[i] = draft:tensor(id) end
    local masked, is_forward = attributes.causal == 1, out[1].op == "attention"
    if is_forward and masked and tensors[1].shape[2] ~= tensors[2].shape[2] then
      draft:remark(("attention of %d places to %d (%s) stays gathered"):format(tensors[1].shape[2], tensors[2].shape[2], out[1].line))
      goto next
    end
    if is_forward then check(who, out[1], attributes, ranks, tensors) end
    draft:beside(out[1], out[1].runs)
    local parts = zigzag.parts(axis, ranks, masked)
    local ring = setmetatable({ draft = draft, axis = axis, attributes = attributes, parts = parts }, Ring)
    if is_forward then
      local q, k, v = parts:of(tensors[1]), parts:of(tensors[2]), parts:of(tensors[3])
      local o, lse = ring:forward(q, k, v)
      forward[out[2].id] = { q, k, v, o, lse }
      draft:replace(out[1], parts:whole(o))
    elseif forward[inputs[6]] then
      local slopes = { ring:backward(parts:of(tensors[1]), table.unpack(forward[inputs[6]])) }
      for i = 1, 3 do draft:replace(out[i], parts:whole(slopes[i])) end
    end
    ::next::
  end
end

return M
