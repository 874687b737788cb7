-- SPDX-License-Identifier: Apache-2.0
--
-- Dataset:augment: images that are changed at random (core/data/augment.h).
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"

local function images_in(data, name)
  local known = {}
  for i, field in ipairs(engine.fields(data)) do
    known[i] = field.name
    if field.name == name then
      if #field.dims ~= 3 then orrery.fail(("augment: '%s' is %s: images are [C,H,W]"):format(name, field.type)) end
      return field
    end
  end
  orrery.fail(("augment: there is no field '%s'; the dataset has %s"):format(name, table.concat(known, ", ")))
end

local function check_crop(o, images)
  local most = 2 ^ 31
  if o.crop < 0 or o.pad < 0 or o.crop >= most or o.pad >= most then
    orrery.fail(("augment: crop is %d and pad %d: neither is below 0"):format(o.crop, o.pad))
  end
  if o.pad > 0 and o.crop == 0 then
    orrery.fail(("augment: pad is %d without crop: say how large the cropped image is"):format(o.pad))
  end
  if o.crop > math.min(images.dims[2], images.dims[3]) + 2 * o.pad then
    orrery.fail(("augment: crop is %d, the images are %s with a padding of %d: crop less"):format(o.crop, images.type,
      o.pad))
  end
end

local function check_normal(o, images)
  if #o.mean == 0 and #o.std == 0 then return end
  if #o.mean ~= images.dims[1] or #o.std ~= images.dims[1] then
    orrery.fail(("augment: mean has %d numbers and std %d: give one for each of the %d channels"):format(#o.mean, #o.std,
      images.dims[1]))
  end
  for _, each in ipairs(o.std) do
    if not (each > 0) then orrery.fail(("augment: std has %g: it is divided by, and above 0"):format(each)) end
  end
  if images.dtype ~= "f32" then
    orrery.fail(("augment: mean and std need images of f32, '%s' is %s"):format(o.field, images.type))
  end
end

define([[Dataset:augment(options) -> Dataset; Images [C,H,W] changed at random: the same for the same seed, epoch and
    sample, on any number of ranks.
    @option field: string = 'x'; which field holds them
    @option crop: integer = 0; edge of a random square; 0: the whole image
    @option pad: integer = 0; zeros around the image before it is cropped
    @option flip: boolean = false; every second one is mirrored, left and right
    @option mean: table = {}; one number for each channel, subtracted
    @option std: table = {}; one number for each channel, by which is divided then]],
  function(data, o)
    local images = images_in(data, o.field)
    check_crop(o, images)
    check_normal(o, images)
    return engine.augment(data, o)
  end)
