-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
orrery.tensor({ 1 }, "f31")
--> argument.lua:3: unknown dtype 'f31': one of f32, f64, bf16, f16, i32, i64, u8, bool
