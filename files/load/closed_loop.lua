-- Copyright (c) 2026, colocation.testbed contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- wrk script: wrk's own closed loop (each connection sends when its last answer has come), with the same result line as
-- open_loop.lua. wrk -t THREADS -c CONNECTIONS -d SECONDS -s closed_loop.lua URL -- connections=CONNECTIONS

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local clock = dofile(here .. "clock.lua")
local report = dofile(here .. "report.lua")

local start_us, start_monotonic_us, member = nil, nil, nil

function setup(thread)
   if not member then
      member = thread
      start_us, start_monotonic_us = clock.wall_us(), clock.monotonic_us()
   end
end

function init(arguments)
   connections = report.arguments(arguments).connections
end

function done(summary, latency)
   report.print(summary, latency, member:get("connections"), {
      scheduled = summary.requests,
      sent = summary.requests,
      late = 0,
      late_max_ms = 0,
      start_wall_us = start_us,
      start_mono_us = start_monotonic_us,
      window_us = summary.duration,
   })
end
