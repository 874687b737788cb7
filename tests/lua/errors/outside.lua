-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local x = orrery.zeros { 2 }
--> outside.lua:3: tensors are computed only while a function is traced: inside the loss of orrery.compile, orrery.value_and_grad or orrery.func; to compute with the numbers that a parameter has now, write parameter:read()
