-- SPDX-License-Identifier: Apache-2.0
--
--- orrery.einsum(equation, ...)
--- Sums of products as Einstein wrote them, for one tensor or several: "bij,bjk->bik" is a matrix product, "ij->ji" a
--- transposition. Each dim has a letter; one that the result does not have is summed. Several tensors are multiplied from
--- left to right, each time as one matrix product.
---@param equation string
---@param ... orrery.Tensor
---@return orrery.Tensor
local _, orrery = ...

local function refuse(equation, why) orrery.fail(("einsum \"%s\": %s"):format(equation, why)) end

-- The letters of each input, and of the result.
local function parse(equation)
  local inputs, result = equation:gsub("%s", ""):match "^([%a,]+)%->(%a*)$"
  if not inputs then refuse(equation, "write letters for each tensor, then those of the result: \"ij,jk->ik\"") end
  local terms = {}
  for term in (inputs .. ","):gmatch "(%a*)," do terms[#terms + 1] = term end
  for _, term in ipairs { result, table.unpack(terms) } do
    for letter in term:gmatch "%a" do
      if select(2, term:gsub(letter, "")) > 1 then refuse(equation, ("'%s' has '%s' twice"):format(term, letter)) end
    end
  end
  for letter in result:gmatch "%a" do
    if not inputs:find(letter) then refuse(equation, ("no tensor has the result's '%s'"):format(letter)) end
  end
  return terms, result
end

-- The letters of `of` for which has(letter).
local function those(of, has)
  return (of:gsub("%a", function(letter) if not has(letter) then return "" end end))
end

local function permuted(x, from, to)
  if from == to then return x end
  local order = {}
  for letter in to:gmatch "%a" do order[#order + 1] = from:find(letter) end
  return x:permute(table.unpack(order))
end

-- x without the dims whose letters are not in `kept`.
local function summed(x, letters, kept)
  local dims = {}
  for i = 1, #letters do
    if not kept:find(letters:sub(i, i)) then dims[#dims + 1] = i end
  end
  if #dims == 0 then return x, letters end
  return x:sum(dims), those(letters, function(letter) return kept:find(letter) end)
end

-- The product of a and b, of which the letters in `kept` are left, and their order.
local function product(a, la, b, lb, kept, sizes)
  a, la = summed(a, la, lb .. kept)
  b, lb = summed(b, lb, la .. kept)
  local shared = those(la, function(letter) return lb:find(letter) and kept:find(letter) end)
  local inner = those(la, function(letter) return lb:find(letter) and not kept:find(letter) end)
  local rows = those(la, function(letter) return not lb:find(letter) end)
  local columns = those(lb, function(letter) return not la:find(letter) end)
  local function as_matrices(x, letters, own)
    local dims = {}
    for letter in shared:gmatch "%a" do dims[#dims + 1] = sizes[letter] end
    for _, group in ipairs { own, inner } do
      local size = 1
      for letter in group:gmatch "%a" do size = size * sizes[letter] end
      dims[#dims + 1] = size
    end
    return permuted(x, letters, shared .. own .. inner):reshape(table.unpack(dims))
  end
  local y = as_matrices(a, la, rows):matmul(as_matrices(b, lb, columns), { transpose_b = true })
  local letters, dims = shared .. rows .. columns, {}
  for letter in letters:gmatch "%a" do dims[#dims + 1] = sizes[letter] end
  return y:reshape(table.unpack(dims)), letters
end

return function(equation, ...)
  local terms, result = parse(equation)
  local tensors, sizes = { ... }, {}
  if #terms ~= #tensors then refuse(equation, ("it names %d tensors, %d are given"):format(#terms, #tensors)) end
  for i, term in ipairs(terms) do
    local shape = tensors[i].shape
    if #shape ~= #term then refuse(equation, ("tensor %d is %s, not '%s'"):format(i, tostring(shape), term)) end
    for at = 1, #term do
      local letter = term:sub(at, at)
      if sizes[letter] and sizes[letter] ~= shape[at] then
        refuse(equation, ("'%s' is %d and %d"):format(letter, sizes[letter], shape[at]))
      end
      sizes[letter] = shape[at]
    end
  end
  local x, letters = tensors[1], terms[1]
  for i = 2, #terms do
    x, letters = product(x, letters, tensors[i], terms[i], result .. table.concat(terms, "", i + 1), sizes)
  end
  x, letters = summed(x, letters, result)
  return permuted(x, letters, result)
end
