-- SPDX-License-Identifier: Apache-2.0
--
-- A synchronous parameter server: servers own the parameters and their optimizer state, every rank
-- pushes gradients and pulls weights.
--
--   orrery run -n 3 examples/server.lua servers=2
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments { servers = 1 }
example.train(args, { strategy.server { servers = args.servers } })
