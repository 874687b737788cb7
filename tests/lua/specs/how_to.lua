-- SPDX-License-Identifier: Apache-2.0
--
-- Every piece of docs/how-to.md runs, after the first one, which holds the lines they share.
local path = "../../../docs/how-to.md"
local pieces, piece, number = {}, nil, 0
for line in io.lines(path) do
  number = number + 1
  if line == "```lua" then
    piece = { line = number, text = {} }
  elseif line == "```" then
    pieces[#pieces + 1], piece = piece, nil
  elseif piece then
    piece.text[#piece.text + 1] = line
  end
end

local shared = table.remove(pieces, 1)
assert(#pieces >= 12)
for _, each in ipairs(pieces) do
  -- Lines count as in the page from the piece's own first line on.
  local before = ("\n"):rep(each.line - #shared.text) .. table.concat(shared.text, "\n")
  assert(load(before .. "\n" .. table.concat(each.text, "\n"), "@" .. path))()
end
