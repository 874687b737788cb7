-- SPDX-License-Identifier: Apache-2.0
--
--- orrery.scan(step, state, x)
--- Runs a recurrence over the time of x [batch, time, ...]: step(state, x_t, t) returns the next state and a tensor
--- [batch, ...]. Gives these joined along time, [batch, time, ...], and the last state. The recurrence is written out in
--- the program, so a step may be any Lua; carry the last state into another batch as one of its fields to go on.
---@param step fun(state,x,t):any,orrery.Tensor
---@param state any what the first step is handed: a tensor, a table of tensors, nil
---@param x orrery.Tensor
---@return orrery.Tensor, any
local _, orrery = ...

-- t without its second dim, of size 1; and with it again.
local function at_once(t)
  local dims = t.shape
  return t:reshape(dims[1], table.unpack(dims, 3))
end
local function in_time(t)
  local dims = t.shape
  return t:reshape(dims[1], 1, table.unpack(dims, 2))
end

return function(step, state, x)
  if type(step) ~= "function" then
    orrery.fail(("scan: step is %s, expected a function"):format(orrery.type(step)))
  end
  if #x.shape < 2 then
    orrery.fail(("scan: x is %s, expected [batch, time, ...]"):format(tostring(x.shape)))
  end
  local made, y = {}, nil
  for t, part in ipairs { x:split(2, x.shape[2]) } do
    state, y = step(state, at_once(part), t)
    if orrery.type(y) ~= "Tensor" then
      orrery.fail(("scan: step returned %s, expected the next state and a tensor"):format(orrery.type(y)))
    end
    made[t] = in_time(y)
  end
  return orrery.concat(made, 2), state
end
