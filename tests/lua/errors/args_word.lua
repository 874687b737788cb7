-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100 }
--! steps
--= 2
--> args_word.lua:2: argument 'steps': write key=value or @FILE; the script takes steps
