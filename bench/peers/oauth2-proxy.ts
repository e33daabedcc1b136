import { startProxy } from "../machine/cores.ts";
import { accepting, freePort } from "../machine/ports.ts";
import { missingPrograms, needProgram } from "../machine/programs.ts";
import type { Setting } from "../setting/setting.ts";
import { AUDIENCE, GROUP, ISSUER } from "../setting/tokens.ts";
import type { Running } from "./peer.ts";
import { running } from "./running.ts";

/** Where it answers the question of another proxy, and with which status if the request may pass. */
export const OAUTH2_PROXY_QUESTION = { path: "/oauth2/auth", status: "202" } as const;

/** Returns why it cannot take part; undefined if it can. */
export function missingOauth2Proxy(): string | undefined {
  const missing = missingPrograms("oauth2-proxy");
  const install = "go install github.com/oauth2-proxy/oauth2-proxy/v7@latest";
  return missing === undefined ? undefined : `${missing} (${install})`;
}

/**
 * Starts oauth2-proxy with one thread for Go code. It accepts bearer tokens of both algorithms, requires the group, answers
 * with identity headers, and writes its request log into a pipe that is read.
 */
export async function startOauth2Proxy({ keys }: Setting): Promise<Running> {
  const port = await freePort();
  const options = {
    "http-address": `127.0.0.1:${port}`,
    upstream: "static://202",
    "reverse-proxy": true,
    "trusted-proxy-ip": "127.0.0.1/32",
    "skip-jwt-bearer-tokens": true,
    "set-xauthrequest": true,
    "email-domain": "*",
    "allowed-group": GROUP,
    // Logins are not measured; these only have to be there.
    "client-id": AUDIENCE,
    "client-secret": "unused",
    "cookie-secret": "0".repeat(32),
    "login-url": `${ISSUER}/login`,
    "redeem-url": `${ISSUER}/redeem`,
    provider: "oidc",
    "oidc-issuer-url": ISSUER,
    "skip-oidc-discovery": true,
    "oidc-public-key-file": `${keys.ES256.publicFile},${keys.RS256.publicFile}`,
    "oidc-enabled-signing-alg": "ES256,RS256",
  };
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const child = startProxy("own", needProgram("oauth2-proxy"), flags, { GOMAXPROCS: "1" });
  // Reading its log must begin before the pipe is full.
  const ready = child
    .read((output) => output.includes("OAuthProxy configured") || undefined)
    .then(() => accepting(port, child));
  return running(child, ready);
}
