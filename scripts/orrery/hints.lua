-- SPDX-License-Identifier: Apache-2.0
--
-- What to write instead where a script takes one of our objects for a number or a list, or uses a name of PyTorch's.
local _, orrery = ...

-- Loaded when an error first needs it.
local function names() return require "orrery.pytorch_names" end

local hints = {
  { class = "HostTensor", number = "take its numbers by :item() or :tolist()" },
  { class = "StepResult", number = "take the loss by :mean(), other results by :get(name)" },
  { class = "State", number = "take its numbers by :read():item() or :read():tolist()" },
  { class = "Scalar", number = "its number is x.value" },
  { class = "Dataset", number = "take samples by :batches { size = 1 }" },
  { class = "Field", number = "its values are a HostTensor with all methods by :read()" },
  { class = "Tensor", number = "a Tensor has no numbers while its function is traced: compute with its methods, and "
    .. "return what you want to see, from a loss as a second result {name = x} that result:get(name) reads" },
}

local asks = { item = true, tolist = true, numpy = true, read = true, value = true, get = true }

local is_tensor = { Tensor = true, HostTensor = true, State = true, Scalar = true }

local M = {}

-- For a member that a class does not have: "; x:tolist() has its elements" or "".
function M.member(class, member)
  if not is_tensor[class] and names().find(class, member) then return names().hint(class, member) end
  local near = class == "Field" and orrery.did_you_mean(tostring(member), { "dtype", "read", "shape" })
  if near then return near ~= "" and near or M.error "a Field value" end
  for _, hint in ipairs(hints) do
    if hint.class == class and type(member) == "number" then return "; " .. hint.number end
    if hint.class == class and asks[member] then return "; " .. hint.number end
  end
  if not is_tensor[class] then return "" end
  local hint = names().hint("Tensor", member)
  return hint ~= "" and hint or names().hint_in_place(member)
end

-- For a call with wrong arguments: what PyTorch's function of this name does otherwise.
function M.call(owner, name)
  local other = names().other[owner .. "." .. name]
  return other and ("; here it is: %s (docs/from-pytorch.md)"):format(other) or ""
end

-- For a name that a table of the library does not have: PyTorch's, or a method of tensors.
function M.name(owner, name)
  local hint = names().hint(owner, name)
  if hint == "" and owner == "orrery" then hint = names().hint("nn", name) end
  if hint == "" and owner == "orrery" and names().is_same("Tensor", tostring(name)) then
    return ("; write x:%s(...)"):format(name)
  end
  return hint
end

-- For an option that a call does not have: what it has instead, which are `known`, sorted.
function M.option(name, known)
  local theirs = names().hint_option(name, known)
  if theirs ~= "" then return theirs end
  local near = orrery.did_you_mean(name, known)
  return near ~= "" and near or "; it has " .. (known[1] and table.concat(known, ", ") or "none")
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
