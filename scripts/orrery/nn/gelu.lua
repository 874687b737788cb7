-- SPDX-License-Identifier: Apache-2.0
--
-- nn.gelu(x), as a function to put into nn.sequential.
return function(x) return x:gelu() end
