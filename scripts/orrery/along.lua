-- SPDX-License-Identifier: Apache-2.0
--
-- f along any dim, of an f that goes along the last one and keeps the shape.
return function(x, dim, f)
  if dim == -1 or dim == #x.shape then return f(x) end
  return f(x:transpose(dim, -1)):transpose(dim, -1)
end
