-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100, lr = 0.1 }
--! @files/line.conf
--= 2
--> files/line.conf:1: expected key = value, found 'steps: 4'
