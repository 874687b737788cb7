-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
data.tokens("x.bin", { length = 3, dtype = "f32" })
--> data_tokens_dtype.lua:3: dtype is 'f32': token files hold u8, u16, u32, u64, i8, i16, i32 or i64
