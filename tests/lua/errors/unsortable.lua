-- SPDX-License-Identifier: Apache-2.0
for _ in pairs { [{}] = 1, [{}] = 2 } do break end
--> unsortable.lua:2: this table has keys that are neither numbers nor strings: they have no order that all ranks share; keep a list beside it
