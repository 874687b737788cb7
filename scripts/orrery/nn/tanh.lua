-- SPDX-License-Identifier: Apache-2.0
--
-- nn.tanh(x), as a function to put into nn.sequential.
return function(x) return x:tanh() end
