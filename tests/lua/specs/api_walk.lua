-- SPDX-License-Identifier: Apache-2.0
--
-- Walks over everything that a script can call: an option that does not exist, an option in another place than the
-- options', a name in a list and one argument too many are errors, never ignored. Each function is called rightly once
-- (samples/api.lua); a function of the manual without a sample is an error, too.
local orrery = require "orrery"
local manual = require "orrery.manual"
local right_calls = require "samples.api"
local samples, traced = right_calls.others, right_calls.traced

-- What a table with names may stand for where it is no option: by name, the places.
local takes_names = {
  -- any value
  ["orrery.type"] = 1, ["World.allgather_object"] = 1, ["World.broadcast_object"] = 1, ["orrery.scan"] = 2,
  ["nn.init.resolve"] = 1,
  -- names are the script's own
  ["orrery.record"] = 2, ["Run.record"] = 3, ["orrery.args"] = 1, ["orrery.options"] = { 2, 3 }, ["data.arrays"] = 1, ["orrery.parameters"] = 1, ["optim.schedule"] = 2,
}

local function is_free(name, place)
  local free = takes_names[name]
  if type(free) == "table" then return free[1] == place or free[2] == place end
  return free == place
end

-- What has no sample here: what scripts do not call, hooks' drafts and collectives of a mesh axis, whose rows are
-- checked as all others of C++ are (core/lua/api.cpp).
local function is_covered(name)
  return name:find "%.__" or name:find "^engine%." or name:find "^Draft%." or name:find "^Program%."
    or name:find "^Weights%." or name:find "^strategy%.traffic" or name:find "^Tensor%.all_" or name:find "^Tensor%.p?broadcast"
    or name == "Tensor.reduce_scatter" or name == "Tensor.ppermute" or name == "Tensor.vary"
end

-- Methods whose arguments are dims, as many as there are.
local takes_dims = {}
for _, name in ipairs { "reshape", "broadcast", "permute", "view", "expand", "tile" } do takes_dims["Tensor." .. name] = true end

local offenders = {}
local function refuses(name, what, call, arguments)
  local ok, message = pcall(call, table.unpack(arguments, 1, arguments.n))
  if ok then
    offenders[#offenders + 1] = ("%s: %s is ignored"):format(name, what)
  elseif message:find "attempt to" or message:find "bad argument" then
    offenders[#offenders + 1] = ("%s: %s: %s"):format(name, what, message)
  end
end

local function is_list(value) return type(value) == "table" and #value > 0 end
local function is_options(value) return type(value) == "table" and getmetatable(value) == nil and next(value) and #value == 0 end
local function with(value, key, what)
  local copy = {}
  for k, v in pairs(value) do copy[k] = v end
  copy[key] = what
  return copy
end

-- Calls a function with each of its arguments spoilt in turn.
local function spoil(name, call, make, first)
  local function changed(place, value)
    local arguments = table.pack(make())
    arguments[place] = value
    arguments.n = math.max(arguments.n, place)
    return arguments
  end
  local right = table.pack(make())
  local ok, message = pcall(call, table.unpack(right, 1, right.n))
  -- A truth value that nothing reads is an error at the end of the trace.
  if ok and orrery.type(message) == "Tensor" and message.dtype == "bool" then message:cast "f32" end
  if not ok then
    offenders[#offenders + 1] = ("%s: the sample fails: %s"):format(name, message)
    return
  end
  for place = first, right.n do
    local value = right[place]
    if not is_free(name, place - first + 1) then
      refuses(name, "an unknown option in place " .. place, call, changed(place, { no_such_option = 1 }))
    end
    if is_free(name, place - first + 1) then
      -- any names are right here
    elseif is_options(value) then
      refuses(name, "an unknown option", call, changed(place, with(value, "no_such_option", 1)))
      for other = first, right.n do
        if other ~= place and not is_free(name, other - first + 1) then refuses(name, "options in place " .. other, call, changed(other, value)) end
      end
    elseif is_list(value) and getmetatable(value) == nil then
      refuses(name, "a name in the list in place " .. place, call, changed(place, with(value, "keep", true)))
    end
  end
  if not takes_dims[name] then
    refuses(name, "one argument more", call, changed(right.n + 1, { no_such_option = 1 }))
  else
    refuses(name, "one argument more", call, changed(right.n + 1, { keep = true }))
  end
end

local function function_of(name, sample, ...)
  local owner, key = name:match "^(.+)%.([^.]+)$"
  if owner:find "^%u" then return (sample(...))[key], 2 end
  local at = orrery
  for part in owner:gmatch "[^.]+" do
    if part ~= "orrery" then at = at[part] end
  end
  return at[key], 1
end

for _, name in ipairs(manual.names()) do
  local sample = samples[name]
  if sample then
    local call, first = function_of(name, sample)
    spoil(name, call, sample, first)
  end
end
orrery.func(function(x, k, w)
  local yes = x:gt(0)
  for _, name in ipairs(manual.names()) do
    local sample = traced[name]
    if sample then
      local call, first = function_of(name, sample, x, k, w, yes)
      spoil(name, call, function() return sample(x, k, w, yes) end, first)
    end
  end
  return orrery.where(yes, x, 0)
end)(orrery.tensor({ { 1, 2, 3, 4 }, { 5, 6, 7, 8 } }, "f32"), orrery.tensor { 0, 1 }, orrery.tensor({ 1, 1, 1, 1 }, "f32"))

for _, name in ipairs(manual.names()) do
  if samples[name] == nil and not traced[name] and not is_covered(name) then
    offenders[#offenders + 1] = name .. ": has no sample"
  end
end
os.execute(("rm -rf '%s'"):format(right_calls.folder))
assert(#offenders == 0, "\n" .. table.concat(offenders, "\n"))
