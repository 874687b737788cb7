-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
b.orrery.compile(function(batch) return batch.x:mean() end, { microbatch = 2 }) -- here
