-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100, lr = 0.1 }
--! steps=3 @files/unknown.conf
--= 2
--> files/unknown.conf:2: 'stpes' is unknown (did you mean 'steps'?); the script takes lr, steps
