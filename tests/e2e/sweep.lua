-- SPDX-License-Identifier: Apache-2.0
--
-- Many trainings in one job, one after the other, each of a script and arguments of its own (sweep.py).
-- A training that may be refused says so on every rank and the next one begins; any other error ends the job.
local orrery = require "orrery"

local function text_of(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local trainings = load(text_of(orrery.args { list = "" }.list))()

-- Words of a command line, read by the types of the script's defaults.
local function typed(default, word)
  if type(default) == "number" then return math.tointeger(word) or tonumber(word) end
  if type(default) == "boolean" then return word == "true" end
  return word
end

-- The script's own view of the library: orrery.args gives it the arguments of this training.
local function library(words)
  return setmetatable({ args = function(defaults)
    local given = {}
    for name, default in pairs(defaults) do
      given[name] = words[name] and typed(default, words[name]) or words[name] == nil and default
    end
    for name in pairs(words) do assert(defaults[name] ~= nil, name) end
    return given
  end }, { __index = orrery })
end

for _, training in ipairs(trainings) do
  local own = library(training.words)
  local globals = setmetatable({ require = function(name) return name == "orrery" and own or require(name) end },
    { __index = _ENV })
  local run = assert(load(text_of(training.path), "@" .. training.path, "t", globals))
  orrery.log("== %d", training.number)
  if training.may_refuse then
    local done, why = pcall(run)
    if not done then print(("== %d refused on %d: %s"):format(training.number, orrery.world.rank, why)) end
  else
    run()
  end
  run = nil
  collectgarbage()
end
orrery.log "== end"
