-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery repl`: reads lines, runs them, and prints what expressions give. Locals of a line stay for the next ones.
-- Lines come from a terminal or from a pipe (core/lua/terminal.cpp).
local orrery = require "orrery"
local engine = orrery.engine
local manual, completion, conditions =
  require "orrery.manual", require "orrery.completion", require "orrery.conditions"
local host_table = require "orrery.host_table"

local M = {}

local intro = [[orrery repl: an expression prints its value, `? name` what is known of a name; Tab completes.
Ctrl-C interrupts a line, Ctrl-D leaves. `orrery`, `nn`, `optim` and `strategy` are there.
]]

-- What lines read and assign. Anything that is no variable of it is looked up among Lua's own globals.
local variables = setmetatable({}, { __index = load("return _ENV", "=orrery/repl")() })

-- Where the lines of all sessions are kept; nil: nowhere.
local function state_directory()
  local given, user = os.getenv "XDG_STATE_HOME", os.getenv "HOME"
  if given and given:sub(1, 1) == "/" then return given .. "/orrery" end
  return user and user ~= "" and user .. "/.local/state/orrery" or nil
end

-- Adds a line to them, or without one reads them.
local function history(line)
  local directory = state_directory()
  if not directory or not engine.at_terminal() then return end
  if line then engine.make_directory(directory) end
  engine.history(directory .. "/history", line)
end

local function one_line(value, depth)
  local kind = orrery.type(value)
  if kind == "string" then return ("%q"):format(value) end
  if kind ~= "table" or debug.getmetatable(value) then return tostring(value) end
  if depth > 2 then return "{...}" end
  local parts, count = {}, 0
  for i, each in ipairs(value) do
    count = i
    if i > 16 then break end
    parts[i] = one_line(each, depth + 1)
  end
  local ok, iterate, state, first = pcall(pairs, value)
  if not ok then return tostring(value) end -- its keys have no order
  for key, each in iterate, state, first do
    if not (math.type(key) == "integer" and key >= 1 and key <= #value) then
      parts[#parts + 1] = ("%s = %s"):format(key, one_line(each, depth + 1))
    end
    if #parts > 32 then break end
  end
  if count > 16 or #parts > 32 then parts[#parts + 1] = "..." end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- How a value is shown.
local function shown(value)
  local kind = orrery.type(value)
  if kind == "State" then return engine.told(value) end
  if kind == "HostTensor" then return host_table(value) end
  if kind ~= "StepResult" then return one_line(value, 0) end
  local parts = {}
  for i, name in ipairs(value:names()) do
    local its = value:get(name)
    local text = type(its) == "number" and ("%.6g"):format(its) or its.dtype .. tostring(its.shape)
    parts[i] = name .. " " .. text
  end
  return ("step %d: %s"):format(value.step, table.concat(parts, ", "))
end

local count = 0 -- of inputs: errors name the second line of the third one "[3]:2"

-- The chunk of a text, and whether it is an expression; nil and a message if it is neither.
local function chunk_of(text)
  local name = ("@[%d]"):format(count + 1)
  local expression = load("return " .. text, name, "t", variables)
  if expression then return expression, true end
  local chunk, message = load(text, name, "t", variables)
  if not chunk then return nil, message end
  return chunk, false
end

local function is_incomplete(message) return message:sub(-5) == "<eof>" end

-- Runs a chunk; what it has made local becomes a variable when it returns.
local function run(chunk)
  debug.sethook(function()
    if debug.getinfo(2, "f").func ~= chunk then return end
    for i = 1, 200 do
      local name, value = debug.getlocal(2, i)
      if not name then break end
      if name:sub(1, 1) ~= "(" then rawset(variables, name, value) end
    end
  end, "r")
  return chunk()
end

-- Calls a function; prints the error that ends it.
local function attempt(f)
  local ok, message = engine.attempt(f)
  if not ok then io.write("error: ", message, "\n") end
end

-- What is shown is shown inside of `attempt`, as that may run code.
local function run_and_show(chunk, is_expression)
  attempt(function()
    local results = table.pack(run(chunk))
    debug.sethook()
    if is_expression and not (results.n == 1 and results[1] == nil) then
      for i = 1, results.n do io.write(shown(results[i]), "\n") end
    end
  end)
end

local function help(name)
  if name == "" then return io.write(intro) end
  attempt(function() io.write(manual.help(name)) end)
end

-- The name of `? NAME`, `help`, `help NAME` or `help()`, unless it is a variable's; nil of any other line.
local function asks_help(text)
  local name = text:match "^%s*%?%s*(.-)%s*$"
  if name or rawget(variables, "help") ~= nil then return name end
  local rest = text:match "^%s*help%f[^%w_](.*)$"
  return rest and rest:match "^[%s%(]*['\"]?([%w_.:]*)['\"]?[%s%)]*$"
end

local function leaves(text)
  local word = text:match "^%s*(%a+)%s*$" or text:match "^%s*(%a+)%s*%(%s*%)%s*$"
  return (word == "exit" or word == "quit") and rawget(variables, word) == nil
end

-- The next complete input; nil at the end, false if it was discarded.
local function read()
  local text, prompt = nil, "> "
  while true do
    local line = engine.read_line(prompt, function(before) return completion.words(before, variables) end)
    if not line then return line end
    if line:find "%S" then history(line) end
    text = text and text .. "\n" .. line or line
    if asks_help(text) or leaves(text) or not text:find "%S" then return text end
    local chunk, message = chunk_of(text)
    if chunk or not is_incomplete(message) then return text end
    prompt = ">> "
  end
end

function M.run()
  variables.orrery, variables.nn, variables.optim, variables.strategy = orrery, orrery.nn, orrery.optim, orrery.strategy
  if engine.at_terminal() then io.write(intro) end
  history()
  while true do
    local text = read()
    if text == nil or text and leaves(text) then return end
    local name = text and asks_help(text)
    if name then
      help(name)
    elseif text and text:find "%S" then
      local chunk, kind = chunk_of(text)
      count = count + 1
      conditions.remember(("@[%d]"):format(count), text)
      if chunk then run_and_show(chunk, kind) else io.write("error: ", kind, "\n") end
    end
    io.flush()
  end
end

return M
