-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { model = { dim = 8 } }
--> args_default.lua:2: args: 'model' has 'dim'; write { default, help = "..." }
