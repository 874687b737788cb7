-- SPDX-License-Identifier: Apache-2.0
--
-- Tensor methods that ask which elements: masks, triangles, any and all.
local _, orrery = ...
local define = require "orrery.define"

define([[Tensor:masked_fill(mask: Tensor, value: number) -> Tensor; `value` where the boolean mask is true, else the
    element.]],
  function(x, mask, value) return mask:select(value, x) end)

-- Of the last two dims, how far each element is to the right of the main diagonal.
local function beside_diagonal(x)
  if #x.shape < 2 then orrery.fail(("a triangle is of two dims or more, not of %s"):format(tostring(x.shape))) end
  local rows, columns = x.shape[-2], x.shape[-1]
  return orrery.iota(columns):reshape(1, columns) - orrery.iota(rows):reshape(rows, 1)
end

define([[Tensor:triu(diagonal: integer = 0) -> Tensor; The upper triangle of the last two dims, zeros below: from the
    main diagonal on, or one so many places to the right of it.]],
  function(x, diagonal) return beside_diagonal(x):ge(diagonal):select(x, 0) end)
define([[Tensor:tril(diagonal: integer = 0) -> Tensor; The lower triangle of the last two dims, zeros above: up to the
    main diagonal, or one so many places to the right of it.]],
  function(x, diagonal) return beside_diagonal(x):le(diagonal):select(x, 0) end)

local function truth(x) return (x.dtype == "bool" and x or x:ne(0)):cast "i32" end

define([[Tensor:any(dims?: integers, options?) -> Tensor; Whether one of the elements over dims (all, if left out) is
    true, or not 0.
    @option keep: boolean = false; keep the reduced dims with size 1]],
  function(x, dims, o) return truth(x):max(dims, o):gt(0) end)
define([[Tensor:all(dims?: integers, options?) -> Tensor; Whether all elements over dims (all, if left out) are true, or
    not 0.
    @option keep: boolean = false; keep the reduced dims with size 1]],
  function(x, dims, o) return truth(x):min(dims, o):gt(0) end)
