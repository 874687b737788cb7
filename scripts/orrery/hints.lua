-- SPDX-License-Identifier: Apache-2.0
--
-- What to write instead where a script takes one of our objects for a number or a list.

local hints = {
  { class = "HostTensor", number = "take its numbers by :item() or :tolist(), or compute in an orrery.func",
    element = "write x:tolist()[1]" },
  { class = "StepResult", number = "take the loss by :mean(), other results by :get(name)" },
  { class = "State", number = "take its numbers by :read():item() or :read():tolist()",
    element = "write x:read():tolist()[1], or x:slice(dim, first, last) in a traced function" },
  { class = "Scalar", number = "its number is x.value" },
  { class = "Tensor", number = "a Tensor has no numbers while its function is traced: compute with its methods, and "
    .. "return what you want to see, from a loss as a second result {name = x} that result:get(name) reads",
    element = "write x:slice(dim, first, last)" },
}

local asks = { item = true, tolist = true, numpy = true, read = true, value = true, get = true }

local M = {}

-- For a member that a class does not have: "; x:tolist() has its elements" or "".
function M.member(class, member)
  for _, hint in ipairs(hints) do
    if hint.class == class and type(member) == "number" then return "; " .. (hint.element or hint.number) end
    if hint.class == class and asks[member] then return "; " .. hint.number end
  end
  return ""
end

-- For an error of Lua's own, "attempt to perform arithmetic on a HostTensor value": "" for others.
function M.error(message)
  for _, hint in ipairs(hints) do
    if message:find("%f[%w]" .. hint.class .. "%f[%W]") then
      return message:find(hint.number, 1, true) and "" or "; " .. hint.number
    end
  end
  return ""
end

return M
