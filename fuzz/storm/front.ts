import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ask } from "../../test/support/ask.ts";
import { testCertificates } from "../../test/support/certificates.ts";
import { scrape } from "../../test/support/scrape.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { until } from "../../test/support/until.ts";
import { HUNG_MS } from "../judge/time.ts";
import { entry, ERROR_LINE, portIn } from "../subject/sallyport.ts";
import { AUDIENCE, ISSUER, signer, signingKeyPem } from "../subject/tokens.ts";
import { watchProcess } from "../subject/watched-process.ts";

/** The proxy in a storm. */
export interface Front extends AsyncDisposable {
  readonly port: number;
  /** Signs its certificate, PEM; undefined without TLS. */
  readonly ca: string | undefined;
  /** Returns a token with this `jti`. */
  token(jti: string): string;
  /** Revokes a token. @param byOwner whether its owner logs out. @returns whether that was confirmed. */
  revoke(token: string, byOwner: boolean): Promise<boolean>;
  /** Changes the configuration. @param turn differs each time. */
  reload(turn: number): Promise<void>;
  exited(): boolean;
  /** Returns what went wrong since the last call: the process ended, or logged an error. */
  troubles(): string[];
  /** Returns what is in progress, with amounts; nothing if all is over. Rejects if the proxy hangs. */
  left(): Promise<string[]>;
}

/** The backends, by the names of their upstreams. Those that end in h2c speak HTTP/2. */
export type TargetName = `${"innocent-" | "" | "busy-" | "reading-"}${"http1" | "h2c"}`;
export type Targets = Readonly<Record<TargetName, string>>;

/** @param secure whether it speaks TLS. */
export type StartFront = (targets: Targets, secure: boolean) => Promise<Front>;

/** Starts Sallyport with its default time limits, so that what stays is seen. */
export async function startFront(targets: Targets, secure: boolean): Promise<Front> {
  const directory = await temporaryDirectory();
  await mkdir(join(directory.path, "keys"));
  await directory.write("keys/key.pem", signingKeyPem());
  const { ca, server } = await testCertificates();
  const tls = {
    certFile: await directory.write("cert.pem", server.cert),
    keyFile: await directory.write("tls.pem", server.key),
  };
  const write = (turn: number): Promise<string> =>
    directory.write(
      "config.yaml",
      JSON.stringify(configuration(targets, secure ? tls : "off", turn)),
    );
  const file = await write(0);
  const sign = await signer();
  const ports = { main: 0, admin: 0 };
  const child = watchProcess(entry(), ["serve", "--config", file], [], (line) => {
    if (ports.main === 0) ports.main = portIn(line, "listening");
    if (ports.admin === 0) ports.admin = portIn(line, "admin listening");
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
  const authority = secure ? ca : undefined;
  return {
    port: ports.main,
    ca: authority,
    token: (jti) => sign({ jti, sub: jti }),
    async revoke(token, byOwner) {
      const [port, path] = byOwner
        ? [{ port: ports.main, ca: authority }, "/api/logout"]
        : [{ port: ports.admin }, "/-/revoke"];
      const asked = ask(port, path, { method: "POST", token });
      const answer = await soon(asked).catch(() => undefined);
      return answer !== undefined && answer.status < 300;
    },
    async reload(turn) {
      await write(turn);
      const asked = ask({ port: ports.admin }, "/-/reload", { method: "POST" });
      await soon(asked).catch(() => undefined);
    },
    exited: child.exited,
    troubles: child.troubles,
    async left() {
      const page = await soon(scrape({ adminPort: ports.admin }));
      const amounts: [string, number][] = GAUGES.flatMap((name) =>
        page.series
          .filter((series) => series === name || series.startsWith(`${name}{`))
          .map((series): [string, number] => [series, page.value(series) ?? 0]),
      );
      amounts.push(["connections of clients", await connectionsTo(ports.main)]);
      return amounts
        .filter(([, amount]) => amount > 0)
        .map(([name, amount]) => `${name} ${amount}`);
    },
    [Symbol.asyncDispose]: close,
  };
}

/** Rejects if an answer does not come in time. */
async function soon<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined);
  return Promise.race([answer, delay(HUNG_MS).then(() => Promise.reject(new Error("no answer")))]);
}

/** What must be 0 once everybody has left. */
const GAUGES = [
  "sallyport_http_requests_in_flight",
  "sallyport_upstream_requests_in_flight",
  "sallyport_upstream_queue_length",
  "sallyport_websocket_connections",
  "sallyport_buffered_bytes",
];

/** Returns how many connections a server has that it has not closed. Only Linux exposes that; elsewhere it is 0. */
async function connectionsTo(port: number): Promise<number> {
  const table = await readFile("/proc/net/tcp", "utf8").catch(() => "");
  const hexadecimal = port.toString(16).toUpperCase().padStart(4, "0");
  // Established, or closed by the client only (CLOSE_WAIT).
  const held = new RegExp(`^ *\\d+: [0-9A-F]{8}:${hexadecimal} [0-9A-F:]+ (?:01|08) `, "gm");
  return table.match(held)?.length ?? 0;
}

function configuration(targets: Targets, tls: object | "off", turn: number): object {
  const retry = { attempts: 2, on: ["502", "503", "504", "connect", "stale"] };
  const open = { auth: "none", retry };
  const at = (path: string, upstream: string, more: object): object => ({
    name: path.slice(1).replaceAll("/", "-"),
    path,
    upstream,
    ...more,
  });
  return {
    server: { listen: "127.0.0.1:0", tls, http2: true, drain: { delay: "0s", timeout: "1s" } },
    admin: { listen: "127.0.0.1:0" },
    tokens: {
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithm: "EdDSA",
      keys: "keys",
      revocation: { logout: true },
    },
    routes: [
      at("/innocent-http1", "innocent-http1", { auth: "none" }),
      at("/innocent-h2c", "innocent-h2c", { auth: "none" }),
      at("/http1", "http1", { ...open, responseHeaders: { set: { "x-turn": `${turn}` } } }),
      at("/h2c", "h2c", open),
      at("/copied-to-h2c", "http1", { ...open, mirror: { upstream: "copies-h2c" } }),
      at("/copied-to-http1", "h2c", { ...open, mirror: { upstream: "copies-http1" } }),
      at("/busy-http1", "busy-http1", open),
      at("/busy-h2c", "busy-h2c", open),
      at("/token/http1", "http1", { retry }),
      at("/token/h2c", "h2c", { retry }),
      at("/token/reading-http1", "reading-http1", { retry }),
      at("/token/reading-h2c", "reading-h2c", { retry }),
    ],
    upstreams: {
      ...upstreams(targets),
      // Copies go on when the client has left.
      "copies-http1": { targets: [targets.http1], timeouts: COPIES },
      "copies-h2c": { targets: [targets.h2c], protocol: "h2c", timeouts: COPIES },
    },
    log: { format: "json" },
  };
}

const COPIES = { connect: "1s", response: "1s", idle: "1s" };

function upstreams(targets: Targets): Record<string, object> {
  return Object.fromEntries(
    Object.entries(targets).map(([name, url]) => [
      name,
      { targets: [url], protocol: name.endsWith("h2c") ? "h2c" : "http1" },
    ]),
  );
}
