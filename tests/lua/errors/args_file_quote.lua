-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { prompt = "" }
--! @files/quote.conf
--= 2
--> files/quote.conf:1: "once \" has no closing quote
