-- SPDX-License-Identifier: Apache-2.0
--
-- nn.sigmoid(x), as a function to put into nn.sequential.
return function(x) return x:sigmoid() end
