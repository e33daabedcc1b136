-- The requests that wrk sends. Arguments: a file with a token on each line (or "-" for none), the line to begin with,
-- and the size of a JSON body, 0 for a GET. With one token all requests have the same bytes, which costs wrk nothing.

local function read_tokens(file)
  local tokens = {}
  for line in io.lines(file) do
    tokens[#tokens + 1] = line
  end
  return tokens
end

function init(args)
  local file, start, size = args[1], tonumber(args[2]), tonumber(args[3])
  if size > 0 then
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    wrk.body = '{"text":"' .. string.rep("x", size - 11) .. '"}'
  end
  if file == "-" then
    return
  end
  local tokens = read_tokens(file)
  if #tokens == 1 then
    wrk.headers["Authorization"] = "Bearer " .. tokens[1]
    return
  end
  local texts = {}
  for index, token in ipairs(tokens) do
    wrk.headers["Authorization"] = "Bearer " .. token
    texts[index] = wrk.format()
  end
  local index = start
  function request()
    index = index % #texts + 1
    return texts[index]
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"failed":%d,"refused":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.timeout, errors.status
  ))
end
