-- SPDX-License-Identifier: Apache-2.0
local = 3 -- here
