-- Copyright (c) 2026, colocation.testbed contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- Seeded Poisson arrivals, the same on every machine and with every number of threads and connections.

local floor, log = math.floor, math.log
local M31 = 2147483647

-- L'Ecuyer's MRG32k3a (Operations Research 47(1), 1999, figure I): all products stay below 2^53, so doubles hold
-- them exactly; math.random would tie the arrivals to one version of LuaJIT.
local M1, M2 = 4294967087, 4294944443

-- Lehmer's generator of Park and Miller spreads the seed over the state, so that seeds 1 and 2 have nothing in common.
local function lehmer(state)
   state = state % (M31 - 1) + 1
   return function()
      state = state * 16807 % M31
      return state
   end
end

local schedule = {}

-- Uniform numbers in (0, 1). seed: a whole number from 0 to 2^53 - 1.
function schedule.generator(seed)
   local low, high = lehmer(seed % (M31 - 1)), lehmer(floor(seed / (M31 - 1)))
   local a0, a1, a2 = low(), low(), low()
   local b0, b1, b2 = high(), low(), high()
   return function()
      local p1 = (1403580 * a1 - 810728 * a0) % M1
      a0, a1, a2 = a1, a2, p1
      local p2 = (527612 * b2 - 1370589 * b0) % M2
      b0, b1, b2 = b1, b2, p2
      local difference = p1 - p2
      if difference <= 0 then
         difference = difference + M1
      end
      return difference / (M1 + 1)
   end
end

-- Arrival times in microseconds from 0 of a Poisson process, given that exactly rate_rps * window_s arrivals fall into
-- the window: exponential gaps, scaled so that the gap after the last arrival ends with the window. Every window thus
-- offers exactly the rate that was asked. Returns those of one thread: the arrivals index, index + threads, ...
function schedule.arrivals(seed, rate_rps, window_s, index, threads)
   local uniform = schedule.generator(seed)
   local total = floor(rate_rps * window_s + 0.5)
   local own, elapsed = {}, 0
   for number = 1, total do
      elapsed = elapsed - log(uniform())
      if (number - 1) % threads == index then
         own[#own + 1] = elapsed
      end
   end
   local scale = window_s * 1e6 / (elapsed - log(uniform()))
   for number = 1, #own do
      own[number] = own[number] * scale
   end
   return own
end

return schedule
