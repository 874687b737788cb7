-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100 }
--! steps=4.5
--= 2
--> args_type.lua:2: argument steps=4.5: expected an integer
