-- Copyright (c) 2026, colocation.testbed contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- Clocks in microseconds through LuaJIT's ffi: Lua's own os.clock and os.time are too coarse.

local ffi = require("ffi")

ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } testbed_timespec;
int clock_gettime(int clock_id, testbed_timespec *value);
]]

local REALTIME, MONOTONIC = 0, 1
local value = ffi.new("testbed_timespec")

local function read_us(clock_id)
   ffi.C.clock_gettime(clock_id, value)
   return tonumber(value.seconds) * 1e6 + tonumber(value.nanoseconds) / 1e3
end

local clock = {}

function clock.wall_us()
   return read_us(REALTIME)
end

function clock.monotonic_us()
   return read_us(MONOTONIC)
end

return clock
