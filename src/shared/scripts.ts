import { script } from "./state-connection.ts";

/**
 * Scripts that the state server runs atomically. All keys expire, except the two marks by which replicas notice that
 * the server was emptied and whether it has been refilled since.
 */

/**
 * Checks that the server accepts writes, and returns its state. KEYS: probe, mark, events, revocations, filled. ARGV:
 * the mark to set if there is none. Returns the mark, the id of the first event (empty if there is none), and the
 * mark up to which the server was refilled (empty if never).
 */
export const GREET = script(`
redis.call('SET', KEYS[1], '1', 'PX', 1000)
redis.call('SET', KEYS[2], ARGV[1], 'NX')
local time = redis.call('TIME')
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', time[1] * 1000 + math.floor(time[2] / 1000))
local first = redis.call('XRANGE', KEYS[3], '-', '+', 'COUNT', 1)
return { redis.call('GET', KEYS[2]), first[1] and first[1][1] or '', redis.call('GET', KEYS[5]) or '' }`);

/**
 * Reads events after an id. KEYS: events. ARGV: id, maximum. Returns the server's time in milliseconds, and the
 * events.
 */
export const EVENTS_AFTER = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return { string.format('%.0f', now), redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2]) }`);

/**
 * Publishes events to all replicas. KEYS: events. ARGV: milliseconds to keep, maximum events, sender; then the
 * events.
 */
export const TELL = script(`
for i = 4, #ARGV do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'from', ARGV[3], 'event', ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return #ARGV`);

/**
 * Stores revocations until their tokens have expired, and publishes them to all replicas. KEYS: events, revocations.
 * ARGV: as for TELL, but each revocation follows its end, in milliseconds since the epoch.
 */
export const REVOKE = script(`
for i = 4, #ARGV, 2 do
  redis.call('ZADD', KEYS[2], ARGV[i], ARGV[i + 1])
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'from', ARGV[3], 'event', ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', last[2] + 1000))
return #ARGV`);

/**
 * Adds up the spending of replicas on rate limits, by the generic cell rate algorithm. KEYS: one for each caller of a
 * limit. ARGV: the spending of each, in milliseconds. Returns for each the milliseconds until all of it is paid back.
 */
export const SETTLE = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local behind = {}
for i, key in ipairs(KEYS) do
  local due = math.max(tonumber(redis.call('GET', key) or '0'), now) + tonumber(ARGV[i])
  redis.call('SET', key, string.format('%.3f', due), 'PX', math.ceil(due - now) + 1000)
  behind[i] = string.format('%.3f', due - now)
end
return behind`);

/** How long a count of requests in flight stays valid, in milliseconds: replicas repeat it every 2 s. */
const IN_FLIGHT_MS = 5_000;

/**
 * Stores how many requests a replica has in flight, and drops the counts of replicas that have died. KEYS: for each
 * caller of a limit, the counts and their times. ARGV: the replica; then its count for each caller. Returns for each
 * caller how many requests the other replicas have in flight. The field with the empty name contains the sum, so the
 * cost does not depend on the number of replicas.
 */
export const SETTLE_CONCURRENCY = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local elsewhere = {}
local function set(counts, told, who, requests)
  local before = tonumber(redis.call('HGET', counts, who) or '0')
  if requests > 0 then
    redis.call('HSET', counts, who, requests)
    redis.call('ZADD', told, now, who)
  elseif before > 0 then
    redis.call('HDEL', counts, who)
    redis.call('ZREM', told, who)
  end
  if requests ~= before then return redis.call('HINCRBY', counts, '', requests - before) end
  return tonumber(redis.call('HGET', counts, '') or '0')
end
for i = 2, #ARGV do
  local counts, told = KEYS[2 * i - 3], KEYS[2 * i - 2]
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', told, '-inf', now - ${IN_FLIGHT_MS}, 'LIMIT', 0, 100)) do
    set(counts, told, gone, 0)
  end
  local requests = tonumber(ARGV[i])
  local all = set(counts, told, ARGV[1], requests)
  if all > 0 then
    redis.call('PEXPIRE', counts, ${2 * IN_FLIGHT_MS})
    redis.call('PEXPIRE', told, ${2 * IN_FLIGHT_MS})
  else
    redis.call('DEL', counts, told)
  end
  elsewhere[i - 1] = tostring(all - requests)
end
return elsewhere`);
