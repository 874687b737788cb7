-- SPDX-License-Identifier: Apache-2.0
--
-- Less memory on one rank or many: 16-bit compute over f32 weights, activations computed again in
-- backward, microbatches one after another.
--
--   orrery run examples/precision.lua
--   orrery plan examples/precision.lua compute=f32 recompute=false accumulate=false
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments { compute = "bf16", recompute = true, accumulate = true }
local stack = { strategy.data {} }
if args.compute ~= "f32" then stack[#stack + 1] = strategy.precision { compute = args.compute } end
if args.recompute then stack[#stack + 1] = strategy.recompute {} end
if args.accumulate then stack[#stack + 1] = strategy.accumulate {} end
example.train(args, stack)
