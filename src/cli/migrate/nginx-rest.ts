import type { Migration } from "./migration.ts";
import type { Directive } from "./nginx-file.ts";
import { type Reasons, reasonFor, UNKNOWN } from "./source-settings.ts";

/** Why directives have no counterpart. */
const LOST: Reasons = [
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
const SILENT =
  /^(?:worker_|pid$|events$|error_log$|access_log$|log_format$|user$|daemon$|sendfile|tcp_|types|default_type|keepalive|proxy_http_version|proxy_buffer|proxy_busy|proxy_request_buffering|proxy_pass_request_body|proxy_set_body|internal$|server_tokens|charset|resolver|upstream$|server$|http$|location$|merge_slashes|send_timeout|client_(?:header|body)_(?:timeout|buffer|temp))/;

/** Directives that are translated. */
const UNDERSTOOD =
  /^(?:listen|server_name|ssl_certificate|ssl_certificate_key|ssl_protocols|client_max_body_size|auth_request|auth_request_set|proxy_set_header|proxy_pass|proxy_read_timeout|proxy_send_timeout|proxy_connect_timeout|limit_req|limit_req_zone|limit_req_status|set_real_ip_from|real_ip_)/;

/** Reports each remaining directive once. */
export function reportRest(servers: readonly Directive[], to: Migration): void {
  const seen = new Set<string>();
  const look = (directives: readonly Directive[]): void => {
    for (const { name, block = [] } of directives) {
      look(block);
      if (seen.has(name) || UNDERSTOOD.test(name)) continue;
      seen.add(name);
      const why = reasonFor(name, LOST);
      if (why !== undefined || !SILENT.test(name)) to.lost(name, why ?? UNKNOWN);
    }
  };
  look(servers);
}
