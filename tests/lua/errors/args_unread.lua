-- SPDX-License-Identifier: Apache-2.0
print "hello"
--! steps=3
--= 2
--> argument steps=3: the script takes none (it has not called orrery.args)
