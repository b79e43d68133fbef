/* SPDX-License-Identifier: Apache-2.0 */
#include "store/redis_scripts.h"

#include "base/base.h"

const char *const redis_own_keys[REDIS_OWN_KEYS] = {
        REDIS_COUNTER_KEY,
        REDIS_VERSIONS_KEY,
        REDIS_INDEX_KEY,
};

/* clang-format off */

#define NOTE                                                                                  \
        "local function note(key, value)\n"                                                   \
        "  local t = redis.call('TIME')\n"                                                    \
        "  local last = tonumber(redis.call('GET', KEYS[1]) or 0) or 0\n"                     \
        "  local version = string.format('%.0f',\n"                                           \
        "    math.max(last + 1, t[1] * 1000000 + t[2]))\n"                                    \
        "  redis.call('SET', KEYS[1], version)\n"                                             \
        "  redis.call('HSET', KEYS[2], key, redis.sha1hex(value) .. version)\n"               \
        "  redis.call('ZADD', KEYS[3], 0, key)\n"                                             \
        "  return version\n"                                                                  \
        "end\n"

#define WRITE                                                                                 \
        "local function write(key, value)\n"                                                  \
        "  local version = note(key, value)\n"                                                \
        "  redis.call('SET', key, value)\n"                                                   \
        "  return version\n"                                                                  \
        "end\n"

/* The version of a key; a key that another program has removed is unindexed. */
#define FIND                                                                                  \
        "local function find(key)\n"                                                          \
        "  local value = redis.call('GET', key)\n"                                            \
        "  local seen = redis.call('HGET', KEYS[2], key)\n"                                   \
        "  if not value then\n"                                                               \
        "    if seen then\n"                                                                  \
        "      redis.call('HDEL', KEYS[2], key)\n"                                            \
        "      redis.call('ZREM', KEYS[3], key)\n"                                            \
        "    end\n"                                                                           \
        "    return false, '0'\n"                                                             \
        "  end\n"                                                                             \
        "  if seen and string.sub(seen, 1, 40) == redis.sha1hex(value) then\n"                \
        "    return value, string.sub(seen, 41)\n"                                            \
        "  end\n"                                                                             \
        "  return value, note(key, value)\n"                                                  \
        "end\n"

const char *const redis_scripts[REDIS_SCRIPT_MAX_] = {
        [REDIS_SCRIPT_GET] = NOTE FIND
                "if redis.call('STRLEN', KEYS[4]) > tonumber(ARGV[1]) then return 'large' end\n"
                "local value, version = find(KEYS[4])\n"
                "if not value then return false end\n"
                "return { version, value }\n",

        [REDIS_SCRIPT_PUT] = NOTE WRITE
                "return write(KEYS[4], ARGV[1])\n",

        [REDIS_SCRIPT_REMOVE] = NOTE FIND
                "if ARGV[1] ~= 'any' then\n"
                "  local value, version = find(KEYS[4])\n"
                "  if not value or version ~= ARGV[1] then return 0 end\n"
                "end\n"
                "redis.call('DEL', KEYS[4])\n"
                "redis.call('HDEL', KEYS[2], KEYS[4])\n"
                "redis.call('ZREM', KEYS[3], KEYS[4])\n"
                "return 1\n",

        [REDIS_SCRIPT_CAS] = NOTE WRITE FIND
                "local value, version = find(KEYS[4])\n"
                "if version ~= ARGV[2] then return '' end\n"
                "return write(KEYS[4], ARGV[1])\n",

        /* A key that is no string, or too large, is not ours and is skipped. */
        [REDIS_SCRIPT_SCAN] = NOTE FIND
                "local from, limit, room = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])\n"
                "local page, n, want, keys = { '0' }, 0\n"
                "repeat\n"
                "  want = limit - n + 1\n"
                "  keys = redis.call('ZRANGEBYLEX', KEYS[3], from, ARGV[2], 'LIMIT', 0, want)\n"
                "  for _, key in ipairs(keys) do\n"
                "    from = '(' .. key\n"
                "    local size = redis.pcall('STRLEN', key)\n"
                "    if type(size) == 'number' and size <= tonumber(ARGV[5]) then\n"
                "      if n == limit or (n > 0 and #key + size > room) then\n"
                "        page[1] = '1'\n"
                "        return page\n"
                "      end\n"
                "      local value, version = find(key)\n"
                "      if value then\n"
                "        n = n + 1\n"
                "        room = room - #key - #value\n"
                "        page[#page + 1] = key\n"
                "        page[#page + 1] = version\n"
                "        page[#page + 1] = value\n"
                "      else\n"
                "        redis.pcall('ZREM', KEYS[3], key)\n"
                "      end\n"
                "    end\n"
                "  end\n"
                "until #keys < want\n"
                "return page\n",

        [REDIS_SCRIPT_INDEX] =
                "for _, key in ipairs(ARGV) do\n"
                "  if redis.call('TYPE', key).ok == 'string' then\n"
                "    redis.call('ZADD', KEYS[3], 0, key)\n"
                "  end\n"
                "end\n"
                "return 1\n",
};

/* clang-format on */
