-- Copyright (c) 2026, colocation.testbed contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- wrk script: send requests at the times of a seeded schedule, whether or not earlier ones were answered.
-- wrk -t THREADS -c CONNECTIONS -d SECONDS -s open_loop.lua URL -- rate_rps=R window_s=W seed=S threads=THREADS
--     connections=CONNECTIONS [trace=PATH]
-- SECONDS: at least window_s + 1, so that answers can come in after the last arrival.
-- trace: each thread writes "due_us sent_us" of its requests, from the window's start, to PATH.INDEX.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local clock = dofile(here .. "clock.lua")
local report = dofile(here .. "report.lua")
local schedule = dofile(here .. "schedule.lua")
local wakeup = dofile(here .. "wakeup.lua")

-- Time for all threads to build their schedule and to connect before the first request is due.
local LEAD_US = 200000
local LATE_US = 1000

local now_us = clock.monotonic_us

-- State of the main thread.
local members, start_wall_us = {}, nil

-- State of a load thread; global where done() reads it with thread:get(). start_us and thread_index come from setup().
local due_us, request_text, arm, trace = {}, nil, nil, nil
local taken, parked = 0, 0
sent, late, late_max_us = 0, 0, 0

function setup(thread)
   if not start_us then
      start_us = now_us() + LEAD_US
      start_wall_us = clock.wall_us() + LEAD_US
   end
   thread:set("start_us", start_us)
   thread:set("thread_index", #members)
   members[#members + 1] = thread
end

local function next_is_due()
   return taken < scheduled and due_us[taken + 1] <= now_us()
end

-- While no connection is parked nobody could send: delay() then takes what is overdue, and counts on no wake-up.
local function arm_next()
   if taken < scheduled and parked > 0 then
      arm(due_us[taken + 1])
   end
end

local function take_due()
   local released = 0
   while parked > 0 and next_is_due() do
      taken, parked, released = taken + 1, parked - 1, released + 1
   end
   arm_next()
   return released
end

function init(arguments)
   local given = report.arguments(arguments)
   due_us = schedule.arrivals(given.seed, given.rate_rps, given.window_s, thread_index, given.threads)
   for number = 1, #due_us do
      due_us[number] = due_us[number] + start_us
   end
   scheduled = #due_us
   window_us = given.window_s * 1e6
   connections = given.connections
   request_text = wrk.format()
   arm = wakeup.make(wrk.thread, connections, clock, take_due)
   if given.trace then
      trace = assert(io.open(given.trace .. "." .. thread_index, "w"))
   end
end

-- Called whenever a connection has become free.
function delay()
   if next_is_due() then
      taken = taken + 1
      return 0
   end
   parked = parked + 1
   if parked == 1 then
      arm_next()
   end
   return wakeup.PARKED_MS
end

-- Called directly before the write. wrk does not say for which connection, so the n-th request is compared with the n-th
-- arrival. It also calls this once to check the syntax, before any delay(): that one is not counted.
function request()
   if sent < taken then
      sent = sent + 1
      local late_by_us = now_us() - due_us[sent]
      if late_by_us > LATE_US then
         late = late + 1
      end
      if late_by_us > late_max_us then
         late_max_us = late_by_us
      end
      if trace then
         local planned_us = due_us[sent] - start_us
         trace:write(string.format("%.3f %.3f\n", planned_us, planned_us + late_by_us))
      end
   end
   return request_text
end

function done(summary, latency)
   local totals = { scheduled = 0, sent = 0, late = 0 }
   local worst_us = 0
   for _, thread in ipairs(members) do
      for name, value in pairs(totals) do
         totals[name] = value + thread:get(name)
      end
      worst_us = math.max(worst_us, thread:get("late_max_us"))
   end
   report.print(summary, latency, members[1]:get("connections"), {
      scheduled = totals.scheduled,
      sent = totals.sent,
      late = totals.late,
      late_max_ms = worst_us / 1000,
      start_wall_us = start_wall_us,
      start_mono_us = start_us,
      window_us = members[1]:get("window_us"),
   })
end
