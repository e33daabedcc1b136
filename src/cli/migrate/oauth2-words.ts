/** Why settings of oauth2-proxy have no counterpart. */
export const LOST: readonly (readonly [RegExp, string])[] = [
  [
    /^cookie|^session|^redis|refresh/,
    "no cookies and no sessions: every request carries its token",
  ],
  [
    /^(?:client_secret|redirect_url|scope|prompt|approval_prompt|login_url|redeem_url|profile_url|validate_url|code_challenge|proxy_prefix|skip_provider_button|whitelist_domains|insecure_oidc|provider|backend_logout|resource|acr|force_|encode_state|relative_redirect|allow_query|signout|bearer_token_login_fallback|oidc_skip)/,
    "no redirects to a provider: clients send Authorization: Bearer",
  ],
  [/^(?:banner|footer|custom_|display_htpasswd_form|show_debug)/, "there is no sign-in page"],
  [/^email_domains$|^authenticated_emails/, "set require of the routes to groups or claims"],
  [/^(?:set_xauthrequest|set_authorization_header|set_basic)/, "nothing is added to responses"],
  [
    /^(?:pass_basic_auth|basic_auth_password|prefer_email|pass_access_token)/,
    "not sent to the backend: see identity.claims",
  ],
  [
    /^(?:github|google|azure|gitlab|keycloak|bitbucket|entra|adfs)/,
    "Sallyport accepts JWTs of any issuer with a key set, and other tokens with introspection",
  ],
  [
    /^ssl_/,
    "the backend's certificate is verified: name its authority in upstreams.<name>.tls.caFile",
  ],
  [/^trusted_ips$/, "see allow and deny of a route; no address may pass without a token"],
  [
    /^skip_auth_(?:preflight|strip)/,
    "list the origins in cors; identity headers that clients send never pass",
  ],
  [/logging|^exclude_logging|^log_/, "see log.level, log.format and log.access"],
  [/^(?:ping|ready)_/, "use /livez and /readyz on the admin listener"],
  [
    /^(?:gcp_healthchecks|force_json_errors|real_client_ip_header|flush_interval|proxy_websockets|api_routes|skip_claims)/,
    "not configurable: always on, or without a counterpart",
  ],
];
