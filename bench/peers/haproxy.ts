import { startProxy } from "../machine/cores.ts";
import { accepting, freePort } from "../machine/ports.ts";
import { missingPrograms, needProgram } from "../machine/programs.ts";
import type { Setting } from "../setting/setting.ts";
import { type Algorithm, AUDIENCE, ISSUER } from "../setting/tokens.ts";
import type { Peer } from "./peer.ts";
import { running } from "./running.ts";

/** HAProxy with one thread. With `checks`, it has the rules for tokens from its manual (HAProxy 2.6, 7.3.1 `jwt_verify`). */
export function haproxy(checks: Algorithm | undefined): Peer {
  return {
    title: checks === undefined ? "HAProxy, no authentication" : `HAProxy, jwt_verify ${checks}`,
    checks,
    missing: () => missingPrograms("haproxy"),
    async start(setting, { backend, tls, cores, http2 }) {
      const port = await freePort();
      const alpn = http2 === undefined ? "" : " alpn h2";
      const front = tls
        ? ` ssl crt ${setting.certificate.bothFile} ssl-min-ver TLSv1.3${alpn}`
        : alpn.replace("alpn", "proto");
      const file = await setting.write(
        `haproxy-${port}.cfg`,
        `global
  nbthread 1
  maxconn 8000

defaults
  mode http
  timeout connect 5s
  timeout client 10m
  timeout server 10m
  timeout tunnel 10m
  http-reuse always

frontend measured
  bind 127.0.0.1:${port}${front}
${checks === undefined ? "" : rules(setting, checks)}
  default_backend app

backend app
  server app 127.0.0.1:${backend}${http2 === "both" ? " proto h2" : ""}
`,
      );
      const child = startProxy(cores, needProgram("haproxy"), ["-q", "-db", "-f", file]);
      return running(child, accepting(port, child));
    },
  };
}

/** The rules that answer 401 unless algorithm, issuer, audience, expiry and signature are valid. */
function rules({ keys }: Setting, algorithm: Algorithm): string {
  const refuse = "http-request deny deny_status 401";
  return `  ${refuse} unless { req.hdr(authorization) -m found }
  http-request set-var(txn.alg) http_auth_bearer,jwt_header_query('$.alg')
  http-request set-var(txn.iss) http_auth_bearer,jwt_payload_query('$.iss')
  http-request set-var(txn.aud) http_auth_bearer,jwt_payload_query('$.aud')
  http-request set-var(txn.exp) http_auth_bearer,jwt_payload_query('$.exp','int')
  http-request set-var(txn.now) date()
  ${refuse} unless { var(txn.alg) -m str ${algorithm} }
  ${refuse} unless { var(txn.iss) -m str ${ISSUER} }
  ${refuse} unless { var(txn.aud) -m str ${AUDIENCE} }
  ${refuse} unless { http_auth_bearer,jwt_verify(txn.alg,"${keys[algorithm].publicFile}") -m int 1 }
  ${refuse} unless { var(txn.exp),sub(txn.now) -m int gt 0 }`;
}
