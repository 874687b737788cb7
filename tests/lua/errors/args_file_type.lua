-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100, lr = 0.1 }
--! @files/type.conf
--= 2
--> files/type.conf:4: steps=4.5: expected an integer
