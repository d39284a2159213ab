-- Copyright (c) 2026, colocation.testbed contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- Exact wake-ups for wrk's event loop. delay() counts in whole milliseconds, so that all requests due within one
-- millisecond would leave together. Here a connection without work is parked on a far-away timer of wrk's, a timerfd in
-- wrk's own event loop fires at the exact time, and its handler lets the parked timer of one connection elapse.

local ffi = require("ffi")

-- src/ae.h and the start of struct thread in src/wrk.h, the same in wrk 4.1.0 and 4.2.0.
ffi.cdef [[
typedef struct testbed_time_event {
   long long id;
   long when_s;
   long when_ms;
   void *procedure, *finalizer, *data;
   struct testbed_time_event *next;
} testbed_time_event;
typedef struct {
   int max_fd, set_size;
   long long next_timer_id;
   long last_time_s;
   void *events, *fired;
   testbed_time_event *timers;
} testbed_loop;
typedef struct { unsigned long id; testbed_loop *loop; } testbed_thread;
typedef void testbed_handler(testbed_loop *loop, int fd, void *data, int mask);
typedef struct { testbed_timespec interval, value; } testbed_itimerspec;
int aeCreateFileEvent(testbed_loop *loop, int fd, int mask, testbed_handler *handler, void *data);
int aeGetSetSize(testbed_loop *loop);
int timerfd_create(int clock_id, int flags);
int timerfd_settime(int fd, int flags, const testbed_itimerspec *wanted, testbed_itimerspec *previous);
long read(int fd, void *buffer, size_t size);
]]

local MONOTONIC, NONBLOCK_CLOEXEC, ABSOLUTE = 1, 0x80800, 1
local READABLE, OK = 1, 0
local PARKED_S = 1000000

local wakeup = {
   -- What delay() returns for a connection that has nothing to send: longer than any window.
   PARKED_MS = 2 * PARKED_S * 1000,
}

-- The loop of a thread that has not started yet. Raises an error if wrk is built otherwise than this file believes.
local function loop_of(thread, connections)
   local loop = ffi.cast("testbed_thread **", thread)[0].loop
   local wanted = 10 + 3 * connections
   if loop.set_size ~= wanted or ffi.C.aeGetSetSize(loop) ~= wanted or loop.next_timer_id ~= 0 or loop.timers ~= nil then
      error("wrk's event loop is not that of wrk 4.1.0 or 4.2.0")
   end
   return loop
end

-- Let the timer elapse that was parked first, so that all connections take turns.
local function release_one(loop, soon_s)
   local timer, oldest = loop.timers, nil
   while timer ~= nil do
      if timer.id >= 0 and timer.when_s > soon_s then
         oldest = timer
      end
      timer = timer.next
   end
   if oldest == nil then
      error("a parked connection has lost its timer")
   end
   oldest.when_s = 0
end

-- Make the wake-up of one thread. take_due(now_us) is asked at each wake-up how many parked connections to release.
-- Returns arm(at_us), which sets the next wake-up on the monotonic clock.
function wakeup.make(thread, connections, clock, take_due)
   local loop = loop_of(thread, connections)
   local fd = ffi.C.timerfd_create(MONOTONIC, NONBLOCK_CLOEXEC)
   local wanted, expirations = ffi.new("testbed_itimerspec"), ffi.new("uint64_t[1]")
   local handler = ffi.cast("testbed_handler *", function()
      ffi.C.read(fd, expirations, 8)
      local soon_s = clock.wall_us() / 1e6 + PARKED_S
      for _ = 1, take_due() do
         release_one(loop, soon_s)
      end
   end)
   if fd < 0 or ffi.C.aeCreateFileEvent(loop, fd, READABLE, handler, nil) ~= OK then
      error("no timer could be added to wrk's event loop")
   end
   return function(at_us)
      wanted.value.seconds = math.floor(at_us / 1e6)
      wanted.value.nanoseconds = math.max(1, at_us % 1e6 * 1e3)
      ffi.C.timerfd_settime(fd, ABSOLUTE, wanted, nil)
   end
end

return wakeup
