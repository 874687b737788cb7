-- SPDX-License-Identifier: Apache-2.0
--
-- The strategy of frugal.cpp: of every element of a list of modules backward computes again what is cheap.
local strategy = require "orrery".strategy

local costly = { matmul = true, attention = true }

local function repeat_cheap(draft)
  local ops, order, maker, kept, copies = {}, {}, {}, {}, {}
  for _, role in ipairs { "activation", "grad" } do
    for _, v in ipairs(draft:values(role)) do
      if not ops[v.maker] then
        ops[v.maker] = { first = v.id, out = {}, inputs = draft:inputs(v), backward = v.runs == "backward",
          element = v.region:match "^[^.]+%.(.-%.%d+)%f[%.%z]" }
        order[#order + 1] = v.maker
      end
      local op = ops[v.maker]
      op.out[v.output], maker[v.id] = v.id, op
      op.cheap = v.phase == "forward" and v.batch == "samples" and op.element and not costly[v.op]
    end
  end
  table.sort(order)
  for _, number in ipairs(order) do
    local op = ops[number]
    for _, v in ipairs(op.inputs) do
      if maker[v] and not op.backward and maker[v].element ~= op.element then kept[v] = true end
    end
  end

  local function copy_of(v) -- as backward reads it
    local op = maker[v]
    if not op or not op.cheap or kept[v] then return v end
    if not copies[v] then
      local inputs = {}
      for i, x in ipairs(op.inputs) do inputs[i] = copy_of(x) end
      for i, copy in ipairs { draft:copy(v, "backward", inputs) } do copies[op.out[i]] = copy end
    end
    return copies[v]
  end
  for _, number in ipairs(order) do
    local op, seen = ops[number], {}
    for _, v in ipairs(op.backward and op.inputs or {}) do
      local again = not seen[v] and copy_of(v) or v
      if again ~= v then draft:reread(op.first, v, again) end
      seen[v] = true
    end
  end
end

return strategy.define {
  name = "frugal_lua", class = "exact",
  provides = "recomputation", conflicts = "recomputation",
  transform = function(draft) draft:complete(repeat_cheap) end,
}
