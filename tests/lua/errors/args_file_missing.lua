-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100 }
--! @files/nowhere.conf
--= 2
--> args_file_missing.lua:2: argument '@files/nowhere.conf': cannot be read: files/nowhere.conf: No such file or directory
