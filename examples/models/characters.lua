-- SPDX-License-Identifier: Apache-2.0
--
-- What siamese.lua and forward-forward.lua share: images of made-up characters. A character is a line through a few
-- random points; each image of it is drawn by an unsteady hand.
local orrery = require "orrery"

local function gauss() return math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random()) end

-- So many characters: lists of `points` points {x, y} in the unit square, neighbours of which are well apart.
local function alphabet(count, points)
  local made = {}
  for class = 1, count do
    local line = {}
    while #line < points do
      local x, y, last = math.random(), math.random(), line[#line]
      if not last or (x - last[1]) ^ 2 + (y - last[2]) ^ 2 > 0.2 then line[#line + 1] = { x, y } end
    end
    made[class] = line
  end
  return made
end

-- The square of the distance of (x, y) from the segment between two points.
local function distance(x, y, a, b)
  local dx, dy = b[1] - a[1], b[2] - a[2]
  local t = ((x - a[1]) * dx + (y - a[2]) * dy) / (dx * dx + dy * dy + 1e-9)
  t = math.max(0, math.min(1, t))
  return (x - a[1] - t * dx) ^ 2 + (y - a[2] - t * dy) ^ 2
end

-- An image of a character, size * size numbers in [0, 1]: moved as a whole, and each of its points a little.
local function draw(character, size, unsteady)
  local right, down, hand = gauss() * unsteady, gauss() * unsteady, {}
  for i, point in ipairs(character) do
    hand[i] = { point[1] + right + gauss() * unsteady, point[2] + down + gauss() * unsteady }
  end
  local image = {}
  for row = 1, size do
    for column = 1, size do
      local x, y, near = (column - 2) / (size - 3), (row - 2) / (size - 3), math.huge
      for i = 2, #hand do near = math.min(near, distance(x, y, hand[i - 1], hand[i])) end
      image[#image + 1] = math.max(0, math.min(1, 1.5 - math.sqrt(near) * (size - 3)))
    end
  end
  return image
end

-- `each` images of every character, in turn: lists of images and of 0-based classes.
local function images(characters, each, size, unsteady)
  local x, y = {}, {}
  for _ = 1, each do
    for class, character in ipairs(characters) do
      x[#x + 1], y[#y + 1] = draw(character, size, unsteady), class - 1
    end
  end
  return orrery.tensor(x, "f32"), orrery.tensor(y, "i64")
end

return { alphabet = alphabet, images = images }
