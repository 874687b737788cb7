-- SPDX-License-Identifier: Apache-2.0
--
-- Declares a function of the library: its declaration, as core/lua/api.h has them, on several lines, and its body,
-- which gets checked arguments with defaults filled in.
local _, orrery = ...

return function(declaration, body) orrery.engine.define((declaration:gsub("%s*\n%s*", " ")), body) end
