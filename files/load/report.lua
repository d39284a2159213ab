-- Copyright (c) 2026, colocation.testbed contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- What both load kinds print at the end: one line of JSON after a marker, with the whole histogram.

local ffi = require("ffi")

-- src/stats.h of wrk 4.1.0 and 4.2.0. latency(i) searches from the start for every i: seconds for a long tail.
ffi.cdef [[
typedef struct { uint64_t count; uint64_t limit; uint64_t min; uint64_t max; uint64_t data[]; } testbed_stats;
]]

local report = {}

-- Arguments after "--" as key=value.
function report.arguments(list)
   local found = {}
   for _, text in ipairs(list) do
      local key, value = text:match("^([%w_]+)=(.*)$")
      if key then
         found[key] = tonumber(value) or value
      end
   end
   return found
end

-- The values that occur, ascending, and their counts by value.
local function recorded(latency)
   local stats = ffi.cast("testbed_stats **", latency)[0]
   local values, counts = {}, {}
   if tonumber(stats.count) == 0 then
      return values, counts
   end
   for value = tonumber(stats.min), tonumber(stats.max) do
      local count = tonumber(stats.data[value])
      if count > 0 then
         values[#values + 1] = value
         counts[value] = count
      end
   end
   return values, counts
end

-- wrk's main() always calls stats_correct(), which invents a sample at n - interval, n - 2 * interval, ... for each
-- latency n of at least 2 * interval, going upwards. Going downwards undoes it exactly: the highest value is genuine.
local function uncorrect(values, counts, interval)
   for index = #values, 1, -1 do
      local value = values[index]
      local count = counts[value]
      if value < 2 * interval then
         break
      end
      local invented = value - interval
      while count > 0 and invented > interval do
         counts[invented] = (counts[invented] or 0) - count
         invented = invented - interval
      end
   end
end

-- The interval that main() hands to stats_correct(), or nil when it does not call it.
local function correction_interval(summary, connections)
   local each = math.floor(summary.requests / connections)
   if each > 0 then
      return math.floor(summary.duration / each)
   end
   return nil
end

local function render(values, counts)
   local parts, total = {}, 0
   for _, value in ipairs(values) do
      local count = counts[value]
      if count ~= 0 then
         parts[#parts + 1] = string.format("[%d,%d]", value, count)
         total = total + count
      end
   end
   return "[" .. table.concat(parts, ",") .. "]", total
end

-- Print the result. fields: name -> number, added to the counters and the histogram.
function report.print(summary, latency, connections, fields)
   local values, counts = recorded(latency)
   local interval = correction_interval(summary, connections)
   if interval then
      uncorrect(values, counts, interval)
   end
   local histogram, total = render(values, counts)
   local parts = {}
   for name, value in pairs(fields) do
      parts[#parts + 1] = string.format('"%s":%.3f', name, value)
   end
   local errors = summary.errors
   io.write(
      "\nCOLOCATION_TESTBED_LOAD {",
      string.format('"requests":%d,"bytes":%d,"recorded":%d,', summary.requests, summary.bytes, total),
      string.format(
         '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d},',
         errors.connect, errors.read, errors.write, errors.status, errors.timeout
      ),
      table.concat(parts, ","), #parts > 0 and "," or "",
      '"latency_us":', histogram, "}\n"
   )
end

return report
