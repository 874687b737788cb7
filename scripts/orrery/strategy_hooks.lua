-- SPDX-License-Identifier: Apache-2.0
--
-- What strategy.define makes of the hooks exchange and synchronize: calls of the draft. A hook is tensor code
-- for one parameter. `states` gives each parameter tensors that the strategy keeps: a hook reads s.name and
-- assigns to it what the state will hold afterwards.
local _, orrery = ...

local M = {}

local function sorted_names(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- Of one parameter, as the hook sees them; `save` declares what it has assigned.
local function states_of(d, draft, parameter, o, axis, ranks)
  local kept, now = {}, {}
  for _, name in ipairs(sorted_names(d.states or {})) do
    local init = d.states[name]
    local options = type(init) == "table" and init or { init = init }
    local shape = options.shape
    if type(shape) == "function" then shape = shape(parameter.shape, o, ranks) end
    if shape == false then goto next end
    kept[name] = draft:state(parameter, name, {
      init = options.init or "zeros", leave = options.leave or "mean",
      varying = options.varying and axis or "", shape = shape,
    })
    now[name] = kept[name]
    ::next::
  end
  local function save()
    for _, name in ipairs(sorted_names(now)) do
      local tensor = now[name]
      if not kept[name] then
        orrery.fail(("strategy.%s: a hook assigns s.%s, which is not among its states"):format(d.name, name))
      elseif not rawequal(tensor, kept[name]) then
        draft:update(kept[name], tensor)
      end
    end
  end
  return now, save
end

local real = { f32 = true, f64 = true, bf16 = true, f16 = true }

local function synchronize_one(d, draft, info, o, axis, ranks, round)
  local p = draft:tensor(info)
  local s, save = states_of(d, draft, p, o, axis, ranks)
  local new = d.synchronize(p, s, o, axis, round)
  if new == nil then
    orrery.fail(("strategy.%s: synchronize returns nothing for '%s': return its new value"):format(d.name, info.name))
  end
  save()
  draft:update(p, new)
end

local function synchronize(d, draft, o, axis, ranks, round)
  for _, info in ipairs(draft:values "param") do
    if real[info.dtype] then synchronize_one(d, draft, info, o, axis, ranks, round) end
  end
end

local function check_options(d, o)
  if d.synchronize and math.type(o.every) ~= "integer" then
    orrery.fail(("strategy.%s: synchronize runs every so many steps: give its options every = 1"):format(d.name))
  end
end

-- The transform of a definition with hooks: its axis, its share of the batch, and the hooks.
function M.transform(d)
  return function(draft, o)
    local axis = d.axis or d.name
    check_options(d, o)
    local ranks = draft:axis(axis, o.size or 0)
    for _, field in ipairs(draft:values "batch") do draft:place(field, axis, 1) end
    if d.independent then draft:independent(axis) end
    if d.exchange then
      draft:exchange(axis, function(hooked, p, g)
        local s, save = states_of(d, hooked, p, o, axis, ranks)
        local agreed = d.exchange(g, s, o, axis)
        save()
        return agreed
      end)
    elseif not d.independent then
      for _, gradient in ipairs(draft:values "grad") do draft:reduce(gradient, axis) end
    end
    if d.synchronize then
      local rounds = d.rounds or 1
      if type(rounds) == "function" then rounds = rounds(o, ranks) end
      draft:every(o.every, rounds, function(hooked, round) synchronize(d, hooked, o, axis, ranks, round) end)
    end
    if d.transform then d.transform(draft, o) end
  end
end

return M
