-- SPDX-License-Identifier: Apache-2.0
--
-- What Dataset:augment refuses: it names the option, the value and what fits.
local orrery = require "orrery"
local images = orrery.data.arrays { x = { { { { 1, 2, 3 }, { 4, 5, 6 } } } }, y = { 1 } }
local reals = orrery.data.arrays { x = orrery.tensor({ { { { 1, 2, 3 }, { 4, 5, 6 } } } }, "f32") }

local function refused(data, options, part)
  local ok, why = pcall(data.augment, data, options)
  assert(not ok and why:find(part, 1, true), why)
end

refused(images, { field = "z" }, "augment: there is no field 'z'; the dataset has x, y")
refused(images, { field = "y" }, "augment: 'y' is i64[]: images are [C,H,W]")
refused(images, { crop = -1 }, "crop is -1 and pad 0: neither is below 0")
refused(images, { pad = 1 }, "pad is 1 without crop")
refused(images, { crop = 3 }, "crop is 3, the images are i64[1,2,3] with a padding of 0: crop less")
refused(reals, { mean = { 1, 2 }, std = { 1 } }, "mean has 2 numbers and std 1: give one for each of the 1 channels")
refused(reals, { mean = { 1 }, std = { 0 } }, "std has 0: it is divided by, and above 0")
refused(images, { mean = { 1 }, std = { 1 } }, "mean and std need images of f32, 'x' is i64[1,2,3]")
local one = reals:augment { mean = { 1 }, std = { 2 } }:batch(1, { size = 1 }).x:read():tolist()[1][1]
assert(one[1][1] == 0 and one[2][3] == 2.5)
assert(#reals:augment { crop = 4, pad = 1, flip = true }:batch(1, { size = 1 }).x:read():tolist()[1][1] == 4)
