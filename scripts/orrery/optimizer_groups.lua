-- SPDX-License-Identifier: Apache-2.0
--
-- The option `groups` of optimizers: which parameters a group has, its options, and what is refused. Group 0 has the
-- parameters that none matches.
local _, orrery = ...
local engine = orrery.engine
local is_callable = require "orrery.callable"
local M = {}

-- What a group may say beside the optimizer's options.
local own_words = { match = false, frozen = false, optimizer = false, clip_norm = 0, clip_value = 0 }

local function tests_of(group) return type(group.match) == "table" and group.match or { group.match } end

-- Whether a pattern or a function of a group matches a parameter, by any of its paths.
local function matches(test, parameter, paths)
  if type(test) == "function" then
    local found = test(parameter)
    if found ~= nil and type(found) ~= "boolean" then
      orrery.fail(("match of a group returned %s for '%s', expected true or false"):format(
        engine.describe(found), parameter.name))
    end
    return found == true
  end
  for _, path in ipairs(paths[parameter:identity()]) do
    if orrery.glob(test, path) then return true end
  end
  return false
end

-- The index of the group of a parameter; `paths` are by identity. The first match counts.
function M.index_of(groups, parameter, paths)
  for i, group in ipairs(groups) do
    for _, test in ipairs(tests_of(group)) do
      if matches(test, parameter, paths) then return i end
    end
  end
  return 0
end

local function told(test) return type(test) == "function" and "a function" or ("'%s'"):format(test) end

-- Some of the paths, the one that is most like the pattern first.
local function shown(test, paths)
  table.sort(paths, orrery.natural_less)
  local near = type(test) == "string" and orrery.did_you_mean(test:gsub("%*", ""), paths) or ""
  local more = #paths > 6 and (", ... (%d in all)"):format(#paths) or ""
  return near .. "; there are " .. table.concat(paths, ", ", 1, math.min(#paths, 6)) .. more
end

local function matches_any(test, params, paths)
  for _, parameter in ipairs(params) do
    if matches(test, parameter, paths) then return true end
  end
  return false
end

-- Fails if what a group matches by matches no parameter, or a group gets none because those before it have taken them.
function M.refuse_idle(name, groups, params, paths)
  local taken, all = {}, {}
  for _, parameter in ipairs(params) do
    local own = paths[parameter:identity()]
    taken[M.index_of(groups, parameter, paths)] = true
    table.move(own, 1, #own, #all + 1, all)
  end
  for i, group in ipairs(groups) do
    local tests = {}
    for place, test in ipairs(tests_of(group)) do
      tests[place] = told(test)
      if not matches_any(test, params, paths) then
        orrery.fail(("%s group %d: match %s matches no parameter%s"):format(name, i, tests[place], shown(test, all)))
      end
    end
    if not taken[i] then
      orrery.fail(("%s group %d: what match %s matches is in groups before it, and the first that matches counts: list "
        .. "it earlier"):format(name, i, table.concat(tests, ", ")))
    end
  end
end

-- The norms that are clipped, as {limit =, params =}: of groups with a limit of their own, and of all other parameters.
-- `index` is that of a parameter's group by its identity.
function M.clips(groups, params, index, limit)
  local by_group, clips = {}, {}
  for _, parameter in ipairs(params) do
    local i = index[parameter:identity()]
    local own = i > 0 and groups[i].clip_norm or 0
    local place = own > 0 and i or 0
    if not by_group[place] then
      by_group[place] = { limit = place > 0 and own or limit, params = {} }
      if by_group[place].limit > 0 then clips[#clips + 1] = by_group[place] end
    end
    table.insert(by_group[place].params, parameter)
  end
  return clips
end

local function check_optimizer(name, group)
  local other = group.optimizer
  if orrery.type(other) ~= "Optimizer" then
    orrery.fail(("%s group: optimizer is %s; write optim.adamw{lr = 1e-3}"):format(name, orrery.type(other)))
  end
  if #other.groups > 0 then
    orrery.fail(("%s group: its optimizer %s has groups of its own: list them in one place"):format(name, other.name))
  end
end

local anything = { match = true, optimizer = true } -- checked where they are used

-- Numbers may be functions of the step; what is neither a number nor true or false by default may be anything.
function M.check_values(name, values, defaults)
  for option, default in pairs(defaults) do
    local value, flag = values[option], type(default) == "boolean" and not anything[option]
    local number = type(value) == "number" or is_callable(value)
    if flag and type(value) ~= "boolean" or type(default) == "number" and not number then
      orrery.fail(("%s: %s is %s, expected %s"):format(name, option, engine.describe(value),
        flag and "true or false" or "a number or a function of the step"))
    end
  end
end

-- Fails unless it is a limit of gradients; 0: none.
function M.check_limit(what, name, limit)
  if type(limit) ~= "number" or not (limit >= 0) then
    orrery.fail(("%s: %s is %s, expected 0 or more"):format(what, name, engine.describe(limit)))
  end
end

local function check_match(name, match)
  local expected = "a path pattern, a function of the parameter or a list of them"
  if not match then orrery.fail(("%s group: match is missing: %s"):format(name, expected)) end
  local list = type(match) == "table" and match or { match }
  for i = 1, math.max(#list, 1) do
    if type(list[i]) ~= "string" and type(list[i]) ~= "function" then
      orrery.fail(("%s group: match is %s, expected %s"):format(name, engine.describe(#list > 0 and list[i] or match), expected))
    end
  end
end

local function check_group(name, group, defaults)
  local known = {}
  for word, value in pairs(own_words) do known[word] = value end
  for option, value in pairs(not group.optimizer and defaults or {}) do known[option] = value end
  local what = name .. " group"
  local values = orrery.options(what, group, known)
  for _, limit in ipairs { "clip_norm", "clip_value" } do M.check_limit(what, limit, values[limit]) end
  M.check_values(what, values, known)
  check_match(name, group.match)
  if group.optimizer then check_optimizer(name, group) end
end

-- A group with an optimizer has its options there.
function M.check(name, groups, defaults)
  if type(groups) ~= "table" then
    orrery.fail(("%s: groups is %s, expected a list of tables"):format(name, engine.describe(groups)))
  end
  for key in pairs(groups) do
    if math.type(key) ~= "integer" then
      orrery.fail(("%s: groups has '%s', expected a list of tables"):format(name, tostring(key)))
    end
  end
  for _, group in ipairs(groups) do check_group(name, group, defaults) end
end

-- Fails if an optimizer has an option that means something else in a group.
function M.refuse_options(options)
  for word in pairs(own_words) do
    if options[word] ~= nil then
      orrery.fail(("define: the option '%s' is what groups say themselves: give it another name"):format(word))
    end
  end
end

-- The options of a group: those of its optimizer, or else `own` but for what it says.
function M.options_of(group, own)
  if group.optimizer then return group.optimizer.options[0] end
  local options = {}
  for option, value in pairs(own) do
    if group[option] ~= nil then value = group[option] end
    options[option] = value
  end
  return options
end

return M
