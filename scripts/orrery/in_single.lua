-- SPDX-License-Identifier: Apache-2.0
--
-- Makes of f(x, ...) a function that, of an x of 16 bits, computes in f32 and rounds the result once: sums and squares
-- of numbers of 16 bits are often none, and what is left of differences has few bits.
return function(f)
  return function(x, ...)
    if not x.dtype:find "16" then return f(x, ...) end
    return f(x:cast "f32", ...):cast(x.dtype)
  end
end
