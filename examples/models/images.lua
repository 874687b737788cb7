-- SPDX-License-Identifier: Apache-2.0
--
-- What resnet.lua and alexnet.lua share: images, CIFAR-10's binary files or gratings that are drawn here, and the loop
-- that trains on them.
local orrery = require "orrery"

-- Waves across the image, whose direction and colour tell the class, with noise.
local function gratings(count, size, classes)
  local x, y = {}, {}
  for i = 1, count do
    local class = (i - 1) % classes
    local angle, phase = class * math.pi / classes, math.random() * 2 * math.pi
    y[i], x[i] = class, {}
    for channel = 1, 3 do
      x[i][channel] = {}
      for row = 1, size do
        local line = {}
        for column = 1, size do
          local along = row * math.cos(angle) + column * math.sin(angle)
          line[column] = math.sin(along * 0.9 + phase + channel * class) + 0.5 * (math.random() - 0.5)
        end
        x[i][channel][row] = line
      end
    end
  end
  return orrery.data.arrays { x = orrery.tensor(x, "f32"), y = y }
end

-- Of a directory of CIFAR-10: what is trained on, cropped and mirrored at random, and what is evaluated.
local function cifar(directory)
  local train, test = {}, {}
  for _, path in ipairs(orrery.data.files(directory, { ".bin" })) do
    local list = path:match "test[^/]*$" and test or train
    list[#list + 1] = path
  end
  local usual = { mean = { 0.4914, 0.4822, 0.4465 }, std = { 0.247, 0.2435, 0.2616 } }
  return orrery.data.cifar(train):augment { crop = 32, pad = 4, flip = true, mean = usual.mean, std = usual.std },
    orrery.data.cifar(#test > 0 and test or train):augment(usual)
end

-- The data of a script, to train on and to evaluate: `directory`, or where that is "", drawn images.
local function read(directory, images, size, classes)
  if directory ~= "" then return cifar(directory) end
  return gratings(images, size, classes), gratings(images, size, classes)
end

-- Trains a run whose loss has an "accuracy" beside it, and evaluates it at the end. args: batch, steps, every, images.
local function train(run, data, held_out, args)
  run:fit { data = data, size = args.batch, steps = args.steps, log = args.every }
  local seen = run:eval(held_out, { size = args.batch, limit = args.images })
  orrery.log("in evaluation: loss %.4f accuracy %.3f", seen:mean(), seen:get "accuracy")
end

return { read = read, train = train }
