import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { testCertificates } from "../../test/support/certificates.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { until } from "../../test/support/until.ts";
import { PUBLIC, type Subject, TRUSTED } from "./subject.ts";
import { AUDIENCE, credentials, ISSUER, signingKeyPem } from "./tokens.ts";
import { watchProcess } from "./watched-process.ts";

/** The maximum body size, in bytes: small, so that cases exceed it. */
export const BODY_BYTES = 64 * 1024;

/** Log lines that must not occur. */
export const ERROR_LINE = /"level":"(?:error|fatal)"/;

/**
 * Starts the product the way users do, with short time limits, in front of a backend.
 *
 * @param secure whether it speaks TLS.
 * @param preloaded modules that are loaded into its process first.
 */
export async function startSallyport(
  backend: string,
  secure = false,
  preloaded: readonly string[] = [],
): Promise<Subject> {
  const directory = await temporaryDirectory();
  await mkdir(join(directory.path, "keys"));
  await directory.write("keys/key.pem", signingKeyPem());
  // JSON is YAML, too.
  const { ca, server } = await testCertificates();
  const tls = {
    certFile: await directory.write("cert.pem", server.cert),
    keyFile: await directory.write("tls.pem", server.key),
  };
  const settings = configuration(backend, secure ? tls : "off");
  const file = await directory.write("config.yaml", JSON.stringify(settings));
  const tokens = await credentials();
  const signature = tokens.valid.slice(tokens.valid.lastIndexOf(".") + 1);
  const ports = { main: 0, admin: 0 };
  const child = watchProcess(entry(), ["serve", "--config", file], preloaded, (line) => {
    if (ports.main === 0) ports.main = portIn(line, "listening");
    if (ports.admin === 0) ports.admin = portIn(line, "admin listening");
    if (line.includes(signature)) return `a token in the log: ${line}`;
    return ERROR_LINE.test(line) ? line : undefined;
  });
  const close = async (): Promise<void> => {
    await child[Symbol.asyncDispose]();
    await directory.close();
  };
  try {
    await until(() => child.exited() || (ports.main > 0 && ports.admin > 0), 20_000);
    if (child.exited()) throw new Error(`Sallyport did not start: ${child.troubles().join("\n")}`);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    port: ports.main,
    ca: secure ? ca : undefined,
    credentials: tokens,
    keepsContract: true,
    identity: ({ isPublic }) => (isPublic ? NOBODY : ALICE),
    troubles: child.troubles,
    exited: child.exited,
    alive: () => isAlive(ports.admin),
    residentBytes: child.residentBytes,
    loop: child.loop,
    [Symbol.asyncDispose]: close,
  };
}

const ALICE: ReadonlyMap<string, string> = new Map([
  ["x-auth-subject", "alice"],
  ["x-auth-groups", "sales"],
  ["x-auth-issuer", ISSUER],
]);
const NOBODY: ReadonlyMap<string, string> = new Map();

/** Routes that read more of a request than others. */
const COSTLY_ROUTES = [
  { name: "encoded", path: "/encoded/", auth: "none", paths: "encoded", upstream: "app" },
  { name: "sent", path: "/sent/", auth: "none", paths: "asSent", upstream: "app" },
  { name: "sent-inner", path: "/sent/admin", auth: "none", upstream: "app" },
  {
    name: "expression",
    regex: "/(x+/)*y",
    auth: "none",
    paths: "asSent",
    upstream: "app",
  },
  {
    name: "prefixed",
    path: "/prefixed/",
    auth: "none",
    upstream: "app",
    rewrite: { stripPrefix: "/prefixed", addPrefix: "/public" },
  },
  {
    name: "places",
    path: "/places/",
    auth: "optional",
    upstream: "app",
    tokenFrom: [
      ...[{ header: "Authorization" }, { header: "X-Token" }, { cookie: "session" }],
      ...[{ query: "token" }, { websocketProtocol: true }],
    ],
  },
  // Each of them compares the same header, for each reading of a path.
  ...Array.from({ length: 40 }, (_, at) => ({
    name: `tenant-${at}`,
    path: "/tenants/",
    auth: "none",
    paths: "asSent",
    upstream: "app",
    headers: { "X-Tenant": `tenant-${at}` },
  })),
  { name: "tenants", path: "/tenants/", auth: "none", paths: "asSent", upstream: "app" },
];

function configuration(backend: string, tls: object | "off"): object {
  return {
    server: {
      listen: "127.0.0.1:0",
      tls,
      http2: true,
      trustedProxies: [TRUSTED, "::1"],
      proxyProtocol: "accept",
      limits: { bodyBytes: `${BODY_BYTES}B`, headers: 256 },
      timeouts: { header: "1s", request: "2s" },
      drain: { delay: "0s", timeout: "1s" },
    },
    admin: { listen: "127.0.0.1:0" },
    tokens: { issuer: ISSUER, audience: AUDIENCE, algorithm: "EdDSA", keys: "keys" },
    cors: { origins: ["https://page.test", "https://*.pages.test"], credentials: true },
    routes: [
      { name: "public", path: PUBLIC, auth: "none", upstream: "app" },
      ...COSTLY_ROUTES,
      { name: "everything", path: "/", upstream: "app" },
    ],
    upstreams: { app: { targets: [backend] } },
    log: { format: "json" },
  };
}

/** Returns the file to start. */
export function entry(): string {
  return (
    process.env["SALLYPORT_ENTRY"] ?? fileURLToPath(new URL("../../src/main.ts", import.meta.url))
  );
}

/** Returns the port from the log line with this message; 0 for any other line. */
export function portIn(line: string, message: string): number {
  if (!line.includes(`"msg":"${message}"`)) return 0;
  return Number(/"port":(\d+)/.exec(line)?.[1] ?? 0);
}

async function isAlive(adminPort: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${adminPort}/livez`, {
      signal: AbortSignal.timeout(5_000),
    });
    await answer.text();
    return answer.status === 200;
  } catch {
    return false;
  }
}
