-- SPDX-License-Identifier: Apache-2.0
--
--- orrery.op(definition)
--- An op of the script's own, written in others. It is called by what comes back, and as orrery.ops.NAME: with its
--- inputs and then, if it has options, a table of them. Where its work is done, what it costs and, without `backward`,
--- its gradient follow from what `forward` is made of. With several results `backward` gets them in a list, and their
--- cotangents in another one, in which those that are 0 are nil. orrery.check_op tries it.
---@param definition table
---@option name string of letters, digits and _; required
---@option inputs integer=1 tensors that it takes
---@option results integer=1 tensors that it makes
---@option options table={} {name = default}: numbers, texts and booleans
---@option shape fun(o,...):integer[],... each result's shape from those of the inputs; required
---@option forward fun(o,x,...):orrery.Tensor,... required; uses no tensor that was not handed to it
---@option backward fun(o,dy,y,x,...) gives one gradient for each x (nil: none)
---@option examples table={} {{shape, ...}, ...}: lists of the inputs' shapes, for orrery.check_op
---@return fun(...):orrery.Tensor,...
local _, orrery = ...
local engine = orrery.engine

local M = { defined = {} }

local fields = {
  name = "string", inputs = "integer", results = "integer", options = "table", shape = "function", forward = "function",
  backward = "function", examples = "table",
}

local function kind(value) return math.type(value) or type(value) end

local function check_definition(d)
  local known = {}
  for name in pairs(fields) do known[#known + 1] = name end
  for key, value in pairs(d) do
    local want = fields[key]
    if not want then
      orrery.fail(("op: unknown field '%s'%s"):format(tostring(key), orrery.did_you_mean(tostring(key), known)))
    elseif kind(value) ~= want then
      orrery.fail(("op: %s is %s, expected a %s"):format(key, orrery.type(value), want))
    end
  end
  for _, key in ipairs { "name", "shape", "forward" } do
    if d[key] == nil then orrery.fail(("op: %s is missing"):format(key)) end
  end
  for option in pairs(d.options or {}) do
    if type(option) ~= "string" then
      orrery.fail(("op: option %s of '%s' has no name: write options = { name = default }"):format(tostring(option),
        d.name))
    end
  end
  for _, key in ipairs { "inputs", "results" } do
    if (d[key] or 1) < 1 then orrery.fail(("op: %s = %d cannot be, it is at least 1"):format(key, d[key])) end
  end
  if not d.name:find "^[%a_][%w_]*$" then
    orrery.fail(("op: '%s' is no name for orrery.ops: take letters, digits and _"):format(d.name))
  end
end

local function text_of(shape)
  local words = {}
  for i = 1, #shape do words[i] = tostring(shape[i]) end
  return "[" .. table.concat(words, ",") .. "]"
end
M.text_of = text_of

-- The inputs of a call and its options, defaults filled in.
function M.arguments(d, ...)
  local given, inputs = { ... }, d.inputs
  local count = select("#", ...)
  if count < inputs or count > inputs + 1 then
    orrery.fail(("ops.%s takes %d input%s%s, not %d"):format(d.name, inputs, inputs == 1 and "" or "s",
      next(d.options) and " and a table of options" or "", count))
  end
  local o = orrery.options("ops." .. d.name, given[inputs + 1], d.options)
  for name, default in pairs(d.options) do
    if kind(o[name]) ~= kind(default) and not (kind(default) == "float" and kind(o[name]) == "integer") then
      orrery.fail(("ops.%s: %s is %s, expected a value like %s"):format(d.name, name, tostring(o[name]),
        tostring(default)))
    end
  end
  given[inputs + 1] = nil
  for i = 1, inputs do
    if type(given[i]) ~= "userdata" then
      orrery.fail(("ops.%s: input %d is %s, expected a tensor"):format(d.name, i, orrery.type(given[i])))
    end
  end
  return given, o
end

local function check_shape(d, o, xs, ys)
  local shapes = {}
  for i, x in ipairs(xs) do shapes[i] = x.shape end
  local wants = table.pack(d.shape(o, table.unpack(shapes)))
  for k, y in ipairs(ys) do
    if type(wants[k]) ~= "table" then
      orrery.fail(("ops.%s: shape returned %s, expected a list of integers%s"):format(d.name, orrery.type(wants[k]),
        #ys > 1 and (" for result %d"):format(k) or ""))
    end
    if text_of(wants[k]) ~= text_of(y.shape) then
      orrery.fail(("ops.%s: shape says %s, but forward made %s%s"):format(d.name, text_of(wants[k]), text_of(y.shape),
        #ys > 1 and (" as result %d"):format(k) or ""))
    end
  end
end

local function results_of(d, ...)
  local ys, count = { ... }, select("#", ...)
  if count > d.results then
    orrery.fail(("ops.%s: forward returned %d results, the last of them %s: write results = %d"):format(d.name, count,
      engine.describe(ys[count]), count))
  end
  for k = 1, d.results do
    if type(ys[k]) ~= "userdata" then
      orrery.fail(("ops.%s: forward returned %s, expected a tensor%s"):format(d.name, orrery.type(ys[k]),
        d.results > 1 and (" as result %d of %d"):format(k, d.results) or ""))
    end
  end
  return ys
end

-- Each result has the gradient of its own cotangent alone; they add up. The function that computes it is handed the
-- other results behind the inputs, for it may use no other tensors.
local function with_gradients(d, o, xs, ys)
  if d.results == 1 then
    return engine.with_gradient(ys[1], xs, function(dy, y, ...) return d.backward(o, dy, y, ...) end)
  end
  local made, handed = {}, table.move(ys, 1, #ys, #xs + 1, { table.unpack(xs) })
  for k, y in ipairs(ys) do
    made[k] = engine.with_gradient(y, handed, function(dy, mine, ...)
      local given = { ... }
      local all = table.move(given, #xs + 1, #given, 1, {})
      all[k] = mine
      local dxs = table.pack(d.backward(o, { [k] = dy }, all, table.unpack(given, 1, #xs)))
      if dxs.n ~= #xs then
        orrery.fail(("ops.%s: backward returned %d gradients, %d are wanted: return one for each input, or nil"):format(
          d.name, dxs.n, #xs))
      end
      return table.unpack(dxs, 1, #given)
    end)
  end
  return table.unpack(made)
end

local function call(d, ...)
  local xs, o = M.arguments(d, ...)
  local ys = results_of(d, d.forward(o, table.unpack(xs)))
  check_shape(d, o, xs, ys)
  if not d.backward then return table.unpack(ys) end
  return with_gradients(d, o, xs, ys)
end

function M.define(definition)
  check_definition(definition)
  local d = {
    name = definition.name, inputs = definition.inputs or 1, results = definition.results or 1,
    options = definition.options or {}, shape = definition.shape, forward = definition.forward,
    backward = definition.backward, examples = definition.examples or {},
  }
  if M.defined[d.name] then
    orrery.fail(("op: there is an op '%s' already, made at %s: take another name"):format(d.name,
      M.defined[d.name].line))
  end
  d.line = engine.here()
  local shapes = d.examples
  d.examples = function()
    local found = {}
    for i, each in ipairs(shapes) do
      found[i] = {}
      for k, shape in ipairs(each) do found[i][k] = { shape = shape, dtype = "f32" } end
    end
    return found
  end
  d.call = engine.keep_frame(function(...) return call(d, ...) end)
  M.defined[d.name] = d
  return d.call
end

-- Those of plugins, which are asked for when a name is not known otherwise.
local function find_in_plugins()
  for number, found in ipairs(engine.plugin_ops()) do
    if M.defined[found.name] and not M.defined[found.name].plugin then
      orrery.fail(("op: '%s', made at %s, is the name of an op of plugin '%s': take another one"):format(found.name,
        M.defined[found.name].line, found.plugin))
    end
    if not M.defined[found.name] then
      local d = { name = found.name, inputs = found.inputs, results = found.results, options = found.options,
        plugin = found.plugin }
      local function calling(known)
        return engine.keep_frame(function(...)
          local xs, o = M.arguments(d, ...)
          return engine.plugin_op(number, o, xs, known)
        end)
      end
      d.call, d.in_known_ops = calling(false), found.both and calling(true)
      d.examples = function() return engine.plugin_op_examples(number) end
      d.factors = function(types) return engine.plugin_op_factors(number, types) end
      d.part_factors = function(types) return engine.plugin_op_part_factors(number, types) end
      d.on_parts = function(xs, factor, ranks)
        return engine.plugin_op_on_parts(number, d.options, xs, factor, ranks)
      end
      M.defined[d.name] = d
    end
  end
end

function M.definition(name)
  if not M.defined[name] then find_in_plugins() end
  if M.defined[name] then return M.defined[name] end
  local names = {}
  for each in pairs(M.defined) do names[#names + 1] = each end
  orrery.fail(("there is no op ops.%s%s%s"):format(tostring(name), orrery.did_you_mean(tostring(name), names),
    engine.op_plugins_not_loaded()))
end

M.ops = setmetatable({}, {
  __index = function(_, name) return M.definition(name).call end,
  __newindex = function(_, name) orrery.fail(("ops.%s: ops are made by orrery.op"):format(tostring(name))) end,
})

return M
