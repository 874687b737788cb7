-- SPDX-License-Identifier: Apache-2.0
--
-- The manual (orrery.help, stubs, docs/api.md) and what a script can call are the same.
local orrery = require "orrery"
local engine = orrery.engine

local listed = {}
for _, name in ipairs(require "orrery.manual".names()) do
  assert(not listed[name], name .. " is listed twice")
  listed[name] = true
end

-- What exists: functions of the tables, and the files behind those that load when named.
local callable = {}
local function add(owner, shelf)
  for name, value in pairs(shelf) do
    if type(value) == "function" then callable[owner .. "." .. name] = true end
  end
end
local internal = { module_tree = true, init = true, spatial = true }
for _, owner in ipairs { "nn", "optim", "metrics", "strategy" } do
  for _, path in ipairs(orrery.data.files(engine.library() .. "/orrery/" .. owner, { ".lua" })) do
    local name = path:match "([^/]+)%.lua$"
    if not internal[name] then
      local found = assert(orrery[owner][name])
      if type(found) == "table" then -- for one to three dims
        for dims in ipairs(found) do callable[("%s.%s%dd"):format(owner, name, dims)] = true end
      else
        callable[owner .. "." .. name] = true
      end
    end
  end
end
for _, name in ipairs(engine.strategies()) do callable["strategy." .. name] = true end
add("orrery", orrery)
add("engine", engine)
add("data", orrery.data)
add("strategy", orrery.strategy)
add("strategy.traffic", orrery.strategy.traffic)
add("nn.init", orrery.nn.init)

local missing = {}
for name in pairs(callable) do
  if not listed[name] then missing[#missing + 1] = name .. " has no entry" end
end
for name in pairs(listed) do
  local class = name:match "^%u"
  if not class and not callable[name] then missing[#missing + 1] = name .. " does not exist" end
end
assert(#missing == 0, table.concat(missing, "\n"))

-- Classes of the Lua library.
local net = orrery.nn.linear(1, 1)
local attached = orrery.optim.sgd {}:attach(net)
assert(listed["Optimizer.attach"] and listed["Attached.update"] and attached.update)

-- Help has arguments and options, of C++ and of the Lua library; an unknown name is an error with the nearest one.
local help = require "orrery.manual".help
local function has(name, part) assert(help(name):find(part, 1, true), help(name)) end
has("orrery.attention", "orrery.attention(q, k, v, options)")
has("orrery.attention", "{causal = boolean}: a position sees")
has("nn.linear", "nn.linear(inputs, outputs, options?) -> orrery.Module")
has("nn.linear", "{bias = boolean}: default true")
has("compile", "{clip = number}")
has("orrery.strategy.zero", "{stage = integer}")
has("data.tokens", "{length = integer}: tokens in a sample")
assert(select(2, pcall(help, "orrery.atention")):find("did you mean 'orrery.attention'", 1, true))
