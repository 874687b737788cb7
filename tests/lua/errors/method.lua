-- SPDX-License-Identifier: Apache-2.0
local x = require "orrery".tensor { 1 }
print(x.shap)
--> method.lua:3: a HostTensor has no method or field 'shap' (did you mean 'shape'?)
