-- SPDX-License-Identifier: Apache-2.0
for _ in pairs(require "orrery".tensor { 1 }) do break end
--> pairs_of_tensor.lua:2: bad argument #1 to 'pairs' (table expected, got HostTensor); take its numbers by :item() or :tolist()
