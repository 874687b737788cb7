-- SPDX-License-Identifier: Apache-2.0
--
-- A parameter server: servers own the parameters and their optimizer state, workers push gradients and
-- pull weights; in one common step (sync), at each worker's own pace (async), or up to a bound (stale).
--
--   orrery run -n 3 examples/server.lua servers=2
--   orrery run -n 4 examples/server.lua dedicated=1
--   orrery run -n 3 examples/server.lua mode=async push=2 log=arrivals
--   orrery run -n 3 examples/server.lua mode=async push=2 replay=arrivals
--   orrery run -n 3 examples/server.lua mode=stale bound=2
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments {
  mode = "sync", servers = 1, dedicated = 0, push = 1, pull = 1, bound = 0, log = "", replay = "",
}
local of_mode = { async = { "push", "pull", "log", "replay" }, stale = { "bound", "log", "replay" } }
local options = { mode = args.mode, servers = args.servers, dedicated = args.dedicated }
for _, name in ipairs(of_mode[args.mode] or {}) do options[name] = args[name] end
example.train(args, { strategy.server(options) })
