/** Why directives have no counterpart. */
export const LOST: readonly (readonly [RegExp, string])[] = [
  [
    /^(?:root|alias|index|try_files|autoindex)$/,
    "Sallyport serves no files: keep nginx in front, or let the backend serve them",
  ],
  [/^(?:proxy_cache|gzip|brotli|expires|sub_filter|ssi)/, "keep nginx in front for it"],
  [/^http2/, "see server.http2"],
  [/^(?:add_header|more_set_headers|proxy_hide_header)$/, "see responseHeaders of a route"],
  [
    /^(?:satisfy|allow|deny|geo|valid_referers)$/,
    "see allow and deny of a route; no address may pass without a token",
  ],
  [
    /^auth_basic/,
    "clients log in with POST /api/authenticate and then send the token; kind: htpasswd reads the file",
  ],
  [
    /^(?:error_page|proxy_intercept_errors)$/,
    "responses pass unchanged; a refusal is 401 or 403 with JSON, without a redirect",
  ],
  [/^(?:rewrite|return|if|set|map)$/, "move decisions based on variables to the backend"],
  [
    /^(?:proxy_next_upstream|proxy_cookie|proxy_redirect|proxy_bind|proxy_ssl)/,
    "see upstreams and rewrite.responses",
  ],
  [/^ssl_(?:ciphers|prefer|session|dhparam|ecdh|stapling|conf|buffer)/, "the suites are fixed"],
  [/^limit_conn/, "see server.limits.connectionsPerAddress"],
  [/^include$/, "not followed: use the output of nginx -T, which contains all files"],
];

/** Directives that need no counterpart. */
export const SILENT =
  /^(?:worker_|pid$|events$|error_log$|access_log$|log_format$|user$|daemon$|sendfile|tcp_|types|default_type|keepalive|proxy_http_version|proxy_buffer|proxy_busy|proxy_request_buffering|proxy_pass_request_body|proxy_set_body|internal$|server_tokens|charset|resolver|upstream$|server$|http$|location$|merge_slashes|send_timeout|client_(?:header|body)_(?:timeout|buffer|temp))/;
