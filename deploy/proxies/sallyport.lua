-- Asks Sallyport whether a request may pass. Needs HAProxy 2.6 or newer.
local DECIDE = "http://127.0.0.1:8443/_sallyport/decide"
local MILLISECONDS = 1000
local IDENTITY = { "x-auth-subject", "x-auth-groups", "x-auth-issuer", "x-auth-client-subject", "x-auth-client-spiffe-id", "x-auth-client-dns-names" }
-- They are about one message, not about the request.
local OF_MESSAGE = { "connection", "keep-alive", "content-length", "transfer-encoding", "te", "trailer", "expect", "upgrade" }
for _, name in ipairs(OF_MESSAGE) do OF_MESSAGE[name] = true end

core.register_action("sallyport", { "http-req" }, function(txn)
  local headers = txn.http:req_get_headers()
  for name in pairs(OF_MESSAGE) do headers[name] = nil end
  headers["x-original-method"] = { txn.sf:method() }
  headers["x-original-uri"] = { txn.sf:pathq() }
  local answer = core.httpclient():get({ url = DECIDE, headers = headers, timeout = MILLISECONDS })
  local status = answer and answer.status or 0
  if status == 200 then
    for _, name in ipairs(IDENTITY) do
      txn.http:req_set_header(name, (answer.headers[name] or {})[0] or "")
    end
    txn:set_var("txn.sallyport", "yes")
  elseif status >= 400 then
    local reply = txn:reply({ status = status, body = answer.body })
    for name, values in pairs(answer.headers) do
      for _, value in pairs(values) do
        if not OF_MESSAGE[name] then reply:add_header(name, value) end
      end
    end
    txn:done(reply)
  end
end)
