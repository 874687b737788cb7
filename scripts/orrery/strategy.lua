-- SPDX-License-Identifier: Apache-2.0
--
-- strategy.NAME{options}: one entry of a strategy stack. Names are those of the installed plugins and of
-- the files in strategy/, which are written in Lua as scripts can write their own (strategy.define).
local _, orrery = ...
local engine = orrery.engine
local checked = require "orrery.checked"
local fault = require "orrery.lists".fault

-- Lists of names ({ "qkv", "mlp.1" }) travel as text with commas between; a list of parts of the model
-- ({ { "tok", "blocks.1" }, "head" }) with semicolons between the parts.
local in_parts = { stages = true, modules = true }

local function one_table(what, ...)
  local more = select("#", ...)
  if more > 0 then orrery.fail(("%s: %d arguments given, at most 1 expected"):format(what, 1 + more)) end
end

-- A list as such text; nothing for one of other things. A list of numbers is text for an option that takes text.
local function text_of(value, between, fallback)
  if type(value) ~= "table" then return value end
  if type(value[1]) == "number" then
    return type(fallback) == "string" and not fault(value) and table.concat(value, ",") or value
  end
  if not between or fault(value) then return nil end
  local words = {}
  for i, word in ipairs(value) do
    words[i] = text_of(word, between == ";" and "," or nil)
    if type(words[i]) ~= "string" then return nil end
  end
  return table.concat(words, between)
end

-- The options of a plugin as it takes them; `strategy` is what the script calls it.
local function flat(strategy, options, plugin)
  local defaults, given = {}, {}
  for name in pairs(type(options) == "table" and options or {}) do
    if type(name) ~= "string" then
      orrery.fail(("strategy.%s: option %s has no name: write { name = value }"):format(strategy, tostring(name)))
    end
  end
  for _, option in ipairs(engine.strategy_options(plugin or strategy)) do defaults[option.name] = option.fallback end
  orrery.options("strategy." .. strategy, options, defaults)
  for name, value in pairs(options or {}) do
    given[name] = text_of(value, in_parts[name] and ";" or ",", defaults[name])
    if given[name] == nil and type(value) == "table" and fault(value) then
      orrery.fail(("strategy.%s: %s is %s, expected a list of names"):format(strategy, tostring(name), fault(value)))
    elseif given[name] == nil then
      orrery.fail(("strategy.%s: %s is a list of other things than names"):format(strategy, tostring(name)))
    end
  end
  return given
end

local M = {}

--- strategy.fsdp(options)
--- Fully sharded data parallelism by its own name: zero's stage 3.
---@param options? table those of strategy.zero but `stage`
---@return orrery.Strategy
function M.fsdp(options, ...)
  one_table("strategy.fsdp", ...)
  local given = flat("fsdp", options, "zero")
  if given.stage then orrery.fail("strategy.fsdp is stage 3 of strategy.zero: it has no option 'stage'") end
  given.stage = 3
  return { name = "zero", options = given, line = engine.here() }
end

--- strategy.auto(options)
--- Chooses the stack: when the first batch is known, layouts of the model on these ranks are planned, and the one
--- with the shortest planned step is taken. Other entries of the stack stay. An option that is a table has options of
--- the strategy of that name.
---@param options? table
---@option tensor boolean|table=false whether linear layers may be cut, and which: { column = ..., row = ... }
---@option pipeline boolean|table=true whether there may be stages
---@option context boolean|table=false whether sequences may be cut
---@option zero boolean|table=true whether training state may lie in pieces
---@option recompute boolean|string=true whether activations may be computed again, and of which modules
---@option memory string|integer=0 what a rank has, in bytes or as "80GiB"; 0: any
---@option tries integer=24 how many layouts are planned; 0: all that may be the first
---@return orrery.Strategy
function M.auto(options, ...)
  one_table("strategy.auto", ...)
  return require "orrery.search.auto"(options)
end

-- What a rank sends, in bytes, for a query of `predict`: in a sum that all get, the nodes of the tree that it
-- exports to the owners of the other shares and its finished share to all others; in an exchange of pieces, its
-- nodes of what others own or its own piece to all others (orrery/sdk/traffic.hpp has the formulas).
M.traffic = {}

local function check_query(query, names)
  for _, name in ipairs(names) do
    if type(query) ~= "table" or not query[name] then
      orrery.fail(("strategy.traffic: the query has no %s: give what predict is given"):format(name))
    end
  end
end

--- strategy.traffic.sum(query)
--- What a rank sends, in bytes, in a sum over the batch that all get; for a strategy's predict.
---@param query table
---@return integer
function M.traffic.sum(q)
  check_query(q, { "ranks", "rank", "elements", "nodes", "element_bytes" })
  if q.ranks == 1 then return 0 end
  local function cut(rank)
    return math.min(q.elements, ((q.elements * rank + q.ranks - 1) // q.ranks + 15) // 16 * 16)
  end
  local share = cut(q.rank + 1) - cut(q.rank)
  return (q.nodes * (q.elements - share) + share * (q.ranks - 1)) * q.element_bytes
end

--- strategy.traffic.pieces(query)
--- What a rank sends, in bytes, in an exchange of pieces; for a strategy's predict.
---@param query table
---@return integer
function M.traffic.pieces(q)
  check_query(q, { "ranks", "rank", "counts", "nodes", "element_bytes" })
  local all, own = 0, q.counts[q.rank + 1]
  for _, count in ipairs(q.counts) do all = all + count end
  return (q.op == "all_gather" and own * (q.ranks - 1) or q.nodes * (all - own)) * q.element_bytes
end

local fields = {
  name = "string", class = "string", provides = "string", requires = "string", conflicts = "string",
  transform = "function", transform_forward = "function", predict = "function", schedule = "function",
  options = "table", axis = "string", independent = "boolean", states = "table", exchange = "function",
  synchronize = "function", rounds = "number or function",
}

local function check_definition(d)
  local known = {}
  for name in pairs(fields) do known[#known + 1] = name end
  for key, value in pairs(d) do
    local want = fields[key]
    if not want then
      orrery.fail(("strategy.define: unknown field '%s'%s"):format(key, orrery.did_you_mean(tostring(key), known)))
    elseif not want:find(type(value), 1, true) then
      orrery.fail(("strategy.define: %s is %s, expected a %s"):format(key, orrery.type(value), want))
    end
  end
  if (d.independent or d.states) and not (d.exchange or d.synchronize) then
    orrery.fail "strategy.define: independent and states are for the hooks exchange and synchronize: give one"
  end
  for _, key in ipairs { "name", "class" } do
    if not d[key] then orrery.fail(("strategy.define: %s is missing"):format(key)) end
  end
end

local function kind(value) return math.type(value) or type(value) end

-- Is an error where a value is none of the texts that an option may have.
local function check_choice(strategy, name, value, choices)
  for _, each in ipairs(choices) do
    if each == value then return end
  end
  local shown = tostring(value)
  orrery.fail(("strategy.%s: there is no %s '%s'%s: give %s"):format(strategy, name, shown,
    orrery.did_you_mean(shown, choices), table.concat(choices, " or ")))
end

-- The given options over the definition's, each of its type; what may be of several kinds has the default false.
local function checked_options(d, given)
  local defaults = {}
  for name, default in pairs(d.options or {}) do
    defaults[name] = type(default) == "table" and default[1] or default
  end
  local o = orrery.options("strategy." .. d.name, given, defaults)
  for name, default in pairs(d.options or {}) do
    if type(default) == "table" then
      check_choice(d.name, name, o[name], default)
    elseif default and kind(o[name]) ~= kind(default) and not (kind(default) == "float" and type(o[name]) == "number") then
      orrery.fail(("strategy.%s: %s is %s, expected a value like %s"):format(d.name, name, tostring(o[name]),
        tostring(default)))
    end
  end
  if d.synchronize and math.type(o.every) == "integer" and o.every < 1 then
    orrery.fail(("strategy.%s: every = %d: give at least 1 step"):format(d.name, o.every))
  end
  return o
end

--- strategy.define(definition)
--- A strategy of the script's own, called as those of plugins are. docs/strategies/README.md has an
--- example.
---@param definition table
---@option name string required
---@option class string "exact", "stale" or "approx"; required
---@option options table={} {name = default}; a list of texts has those that may be given, the default first
---@option provides string="" words, with commas between, that other strategies may require
---@option requires string="" words that another strategy of the stack must provide
---@option conflicts string="" words that none may provide
---@option axis string=nil of exchange and synchronize: the axis over the ranks that share the batch;
--- left out, the strategy's name
---@option states table={} {name = "zeros" or "parameter"}: tensors kept for each parameter; in full
--- {init = ..., varying = true, leave = "mean"}
---@option exchange fun(g,s,options,axis):orrery.Tensor=nil what all agree on of each rank's summand of the
--- mean gradient
---@option independent boolean=false the ranks train apart
---@option synchronize fun(p,s,options,axis,round):orrery.Tensor=nil the new value of a parameter, every
--- options.every steps
---@option rounds integer|fun(options,ranks):integer=1 how many programs of synchronize take turns
---@option transform fun(draft:orrery.Draft,options:table)=nil edits the differentiated program
---@option transform_forward fun(draft:orrery.Draft,options:table)=nil edits the forward ops
---@option predict fun(query:table,options:table):integer=nil bytes that a rank sends
---@option schedule fun(stage,stages,leaves,options):string[]=nil {"F0", "B0", ...}
---@return fun(options?:table):orrery.Strategy
function M.define(d, ...)
  one_table("strategy.define", ...)
  if type(d) ~= "table" then
    orrery.fail(("strategy.define: the definition is %s, expected a table"):format(engine.describe(d)))
  end
  check_definition(d)
  local hooks = (d.exchange or d.synchronize) and require "orrery.strategy_hooks"
  local transform = hooks and hooks.transform(d) or d.transform
  return engine.keep_frame(function(given, ...)
    one_table("strategy." .. d.name, ...)
    local o = checked_options(d, given)
    local function with_options(f)
      return f and function(...)
        local n = select("#", ...)
        local all = { ... }
        all[n + 1] = o
        return f(table.unpack(all, 1, n + 1))
      end
    end
    return {
      name = d.name, options = {}, given = given or {}, line = engine.here(),
      script = {
        class = d.class, provides = d.provides, requires = d.requires, conflicts = d.conflicts,
        transform = with_options(transform), transform_forward = with_options(d.transform_forward),
        predict = with_options(d.predict), schedule = with_options(d.schedule),
      },
    }
  end)
end

-- Names of the strategies in strategy/.
local function scripted()
  local names = {}
  for _, path in ipairs(orrery.data.files(engine.library() .. "/orrery/strategy", { ".lua" })) do
    names[#names + 1] = path:match "([^/]+)%.lua$"
  end
  return names
end

-- A plugin may have the name of one of them; it is taken, and said once.
local said = {}
local function tell_if_hidden(name)
  if said[name] then return end
  said[name] = true
  for _, script in ipairs(scripted()) do
    if script == name then
      orrery.log("strategy.%s is a plugin's, and hides %s/orrery/strategy/%s.lua", name, engine.library(), name)
    end
  end
end

return setmetatable(M, {
  __index = function(_, name)
    local known = engine.strategies()
    for _, plugin in ipairs(known) do
      if plugin == name then
        tell_if_hidden(name)
        return engine.keep_frame(function(options, ...)
          one_table("strategy." .. name, ...)
          return { name = name, options = flat(name, options), line = engine.here() }
        end)
      end
    end
    for _, script in ipairs(scripted()) do
      if script == name then
        return checked("strategy", name, require("orrery.strategy." .. name), "strategy/" .. name)
      end
      known[#known + 1] = script
    end
    for own in pairs(M) do
      if own ~= "define" and own ~= "traffic" then known[#known + 1] = own end
    end
    table.sort(known)
    local hint = require "orrery.hints".name("strategy", name)
    orrery.fail(("nothing provides the strategy '%s'%s; there are: %s"):format(
      name, hint ~= "" and hint or orrery.did_you_mean(tostring(name), known), table.concat(known, ", ")))
  end,
})
