-- SPDX-License-Identifier: Apache-2.0
--
-- nn.mse(x, y): mean of squared differences.
return function(x, y)
  local difference = x - y
  return (difference * difference):mean()
end
