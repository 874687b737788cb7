#!/usr/bin/env lua
-- SPDX-License-Identifier: Apache-2.0
assert(not pcall(function() undeclared = 1 end))
return 42
