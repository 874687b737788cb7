-- SPDX-License-Identifier: Apache-2.0
--
-- Files of tensors: .npy, weights, and those of torch.save.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"

local remote = require "orrery.remote"
local torch = require "orrery.torch_files"

define([[orrery.load(path: string) -> any; A .npy file as a HostTensor; a .safetensors file, the index of several
    (model.safetensors.index.json), what torch.save has written (.pt, .pth, .bin), or a directory of
    torch.distributed.checkpoint, as a table of them by name.]],
  function(path)
    path = remote.path(path)
    if torch.is_one(path) then return torch.load(path) end
    if path:find "%.safetensors$" or path:find "%.json$" then return engine.load_weights(path) end
    return engine.first(orrery.data.open("npy", path, { whole = true }))
  end)

-- As NumPy names elements.
local kinds = { f32 = "<f4", f64 = "<f8", f16 = "<f2", i32 = "<i4", i64 = "<i8", u8 = "|u1", bool = "|b1" }

-- The header is filled up with blanks, so that the elements begin at a multiple of 64 bytes.
local function npy_header(x)
  local shape = ""
  for _, dim in ipairs(x.shape) do shape = ("%s%d, "):format(shape, dim) end
  local header = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"):format(kinds[x.dtype], shape)
  header = header .. (" "):rep(63 - (#header + 10) % 64) .. "\n"
  return "\x93NUMPY\1\0" .. ("<s2"):pack(header)
end

define([[HostTensor:save(path: string); Writes a .npy file.]], function(x, path)
  if not kinds[x.dtype] then orrery.fail(("%s: .npy has no %s; cast to f32 first"):format(path, x.dtype)) end
  local file, why = io.open(path, "wb")
  local written = file and file:write(npy_header(x), engine.bytes(x))
  if file and not file:close() then written = nil end
  if not written then orrery.fail(("%s: cannot write: %s"):format(path, why or "the disk is full?")) end
end)
