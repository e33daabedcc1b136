import { argon2Sync, randomBytes } from "node:crypto";
import { imageFlags, imageMalloc } from "../../test/support/image-flags.ts";
import { newApiKey } from "../../src/tokens/api-keys/api-key-file.ts";
import { startProxy } from "../machine/cores.ts";
import { HEAP_SOCKET } from "../quick/heap-socket.ts";
import type { Setting } from "../setting/setting.ts";
import { AUDIENCE, GROUP, ISSUER } from "../setting/tokens.ts";
import { MOST_AT_ONCE, type Peer, type Place, type Running } from "./peer.ts";
import { type Feature, type Surroundings, withFeatures } from "./features.ts";
import { running } from "./running.ts";

export const USER = { username: "alice", password: "correct horse battery staple" };

/** Sallyport with everything on: metrics, a JSON access log into a pipe that is read, and a route that requires a group. */
export function sallyport(workers: number): Peer {
  return {
    title: workers === 1 ? "Sallyport" : `Sallyport, ${workers} workers`,
    checks: "ES256",
    missing: () => undefined,
    start: (setting, place) => startSallyport(setting, place, { workers }),
  };
}

/** What the feature `apiKeys` accepts. */
export const API_KEY = newApiKey("bench");

const REPORT_HEAP = new URL("../quick/report-heap.ts", import.meta.url).href;

const USERS = { [USER.username]: { password: phcString(USER.password), groups: [GROUP] } };

interface SallyportOptions extends Surroundings {
  readonly workers?: number;
  /** The script to start; by default, the setting's. */
  readonly entry?: string;
  /** The port of the admin listener; by default, the system chooses one. */
  readonly adminPort?: number;
  /** A socket on which it reports what V8 has allocated: see `allocatedBytes`. */
  readonly heapSocket?: string | undefined;
  /** Features to switch on in addition. */
  readonly features?: readonly Feature[];
}

/** Starts it on ports that the system chooses, and waits until it reports that it listens. */
export async function startSallyport(
  setting: Setting,
  place: Place,
  {
    workers = 1,
    entry = setting.entry,
    adminPort = 0,
    heapSocket,
    features = [],
    stateServer,
  }: SallyportOptions = {},
): Promise<Running> {
  await setting.write("users.yaml", JSON.stringify({ users: USERS }));
  const keys = { bench: { hash: API_KEY.hash, groups: [GROUP] } };
  await setting.write("api-keys.yaml", JSON.stringify({ keys }));
  // JSON is YAML, too.
  const configuration = JSON.stringify(
    withFeatures(describe(setting, place, workers, adminPort), features, { stateServer }),
  );
  const file = await setting.write(
    `sallyport-${randomBytes(4).toString("hex")}.yaml`,
    configuration,
  );
  const flags = [...imageFlags(), ...(heapSocket === undefined ? [] : ["--import", REPORT_HEAP])];
  const args = [...flags, entry, "serve", "--config", file];
  const env = { ...imageMalloc(), ...(heapSocket !== undefined && { [HEAP_SOCKET]: heapSocket }) };
  const child = startProxy(place.cores, process.execPath, args, env);
  const ports = child.read((output) => {
    const port = portIn(output, "listening");
    const adminPort = portIn(output, "admin listening");
    return port === undefined || adminPort === undefined ? undefined : { port, adminPort };
  });
  return running(child, ports);
}

function describe(
  { certificate, keys }: Setting,
  { backend, tls, http2 }: Place,
  workers: number,
  adminPort: number,
) {
  const { certFile, keyFile } = certificate;
  return {
    server: {
      listen: "127.0.0.1:0",
      tls: tls ? { certFile, keyFile, minVersion: "TLSv1.3" } : "off",
      workers,
      // Bodies are still limited, but above the largest one that is sent. All clients have one address.
      limits: {
        bodyBytes: "1GiB",
        connectionsPerAddress: 10_000,
        ...(http2 !== undefined && { bufferedBytes: "1GiB" }),
      },
      ...(http2 !== undefined && { http2: true }),
      timeouts: { keepAlive: "10m" },
      drain: { delay: "0s", timeout: "1s" },
    },
    admin: { listen: `127.0.0.1:${adminPort}` },
    users: [{ kind: "file", path: "users.yaml" }],
    tokens: {
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithm: "ES256",
      keys: keys.ES256.directory,
      cache: { entries: 10_000 },
    },
    routes: [
      { name: "measured", path: "/", require: { groups: { any: [GROUP] } }, upstream: "app" },
    ],
    upstreams: {
      app: {
        targets: [`http://127.0.0.1:${backend}`],
        ...(http2 !== undefined && { connections: MOST_AT_ONCE }),
        ...(http2 === "both" && { protocol: "h2c" }),
      },
    },
    log: { level: "info", format: "json" },
  };
}

/** Returns the port from the log line that reports that a listener is open. */
function portIn(output: string, message: string): number | undefined {
  const line = output.split("\n").find((line) => line.includes(`"msg":"${message}"`));
  const found = /"port":(\d+)/.exec(line ?? "");
  return found === null ? undefined : Number(found[1]);
}

/** Hashes with argon2id at the cost of `hash-password` and OWASP's password storage cheat sheet: 19 MiB, two passes. */
function phcString(password: string): string {
  const nonce = randomBytes(16);
  const cost = { memory: 19_456, passes: 2, parallelism: 1 };
  const tag = argon2Sync("argon2id", { message: password, nonce, tagLength: 32, ...cost });
  const [salt, hash] = [nonce, tag].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=19456,t=2,p=1$${salt}$${hash}`;
}
