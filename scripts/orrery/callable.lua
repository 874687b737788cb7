-- SPDX-License-Identifier: Apache-2.0
--
-- Whether a value can be called: a function, or an object such as a module or a schedule that is told of values.
return function(value)
  local meta = type(value) ~= "function" and debug.getmetatable(value)
  return not meta and type(value) == "function" or meta and rawget(meta, "__call") ~= nil
end
