-- SPDX-License-Identifier: Apache-2.0
--
--- nn.sequential(parts, make)
--- Each part (a module or a function) on the result of the one before.
---@param parts any[]|integer a list of parts, or how many parts `make` makes
---@param make? fun(i:integer):orrery.Module makes the i-th part
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn

return nn.module("sequential", function(m, parts, make)
  if type(parts) == "number" then
    if type(make) ~= "function" then
      orrery.fail "sequential: write nn.sequential(n, function(i) return ... end)"
    end
    for i = 1, parts do m[i] = make(i) end
  else
    for i, part in ipairs(parts) do m[i] = part end
  end
  local count = #m
  for i = 1, count do
    if type(m[i]) ~= "function" and orrery.type(m[i]) ~= "Module" then
      orrery.fail(("sequential: part %d is %s, expected a module or a function"):format(
        i, orrery.type(m[i])))
    end
  end
  return function(x)
    for i = 1, count do x = m[i](x) end
    return x
  end
end)
