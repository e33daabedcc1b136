import { createPublicKey, type KeyObject, type webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP, type ListenOptions } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { withProgress } from "../../src/cli/terminal/progress.ts";
import { type Command, EXIT, type Terminal, UsageError } from "../../src/cli/command.ts";
import { SALLYPORT_NAMES } from "./forgeries.ts";
import { runAllChecks } from "./all-checks.ts";
import type { Result, Verdict } from "./check-result.ts";
import { KEY_PATH, type RecordingBackend, startRecordingBackend } from "./recording-backend.ts";
import { ECHO_SHAPE, ECHO_WITNESS, NO_WITNESS, recordingWitness } from "./answers.ts";
import { durationFlag, parseFlags } from "../../src/cli/arguments.ts";
import { formatFrom } from "../../src/cli/terminal/format.ts";
import type { Peer } from "./raw-exchange.ts";
import { systemCode } from "../../src/lib/text/error-code.ts";

/** The options of `selftest`. */
export interface SelftestOptions {
  readonly peer: Peer;
  /** Value of `Host`. */
  readonly host: string;
  /** Whether the peer is another proxy that asks Sallyport whether a request may pass. */
  readonly asks: boolean;
  readonly token: string;
  readonly format: "text" | "json";
  /** The addresses on which recording backends listen. */
  readonly backends: readonly ListenOptions[];
  readonly echo: boolean;
  /** Ends with a slash, like `publicPath`. */
  readonly protectedPath: string;
  readonly publicPath: string | undefined;
  /** A suffix of paths that require no token, such as `.css`. */
  readonly publicSuffix: string | undefined;
  /** Names of the headers that identify the caller to the backend. */
  readonly identityNames: readonly string[];
  readonly publicKeys: readonly KeyObject[];
}

const text = { type: "string" } as const;
const FLAGS = {
  url: text,
  against: text,
  through: text,
  token: text,
  "token-file": text,
  ca: text,
  insecure: { type: "boolean" },
  backend: { type: "string", multiple: true },
  echo: text,
  protected: text,
  public: text,
  "public-suffix": text,
  identity: { type: "string", multiple: true },
  jwks: text,
  timeout: text,
  format: text,
} as const;

/**
 * Parses the options and reads the files that they name.
 *
 * @throws UsageError for invalid options; it never reveals the token.
 */
export function readOptions(args: readonly string[]): SelftestOptions {
  const flags = parseFlags(args, FLAGS);
  const { backend = [], echo, identity = [], through } = flags;
  const against = flags.against ?? through;
  const format = formatFrom(flags.format, ["text", "json"]);
  if (backend.length > 0 && echo !== undefined) {
    throw new UsageError("--backend and --echo exclude each other");
  }
  if ([flags.url, flags.against, through].filter((each) => each !== undefined).length > 1) {
    throw new UsageError("--url, --against and --through exclude each other");
  }
  const flag = through === undefined ? "--against" : "--through";
  const url = against === undefined ? urlOf("--url", flags.url) : urlOf(flag, against);
  return {
    peer: {
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: Number(url.port || (url.protocol === "https:" ? 443 : 80)),
      tls: tlsOf(url, flags),
      timeoutMs: durationFlag("timeout", flags.timeout ?? "5s", 1),
    },
    host: url.host,
    asks: through !== undefined,
    token: tokenOf(flags),
    format,
    backends: backend.map(listenOptionsOf),
    echo: echo !== undefined,
    protectedPath: folder("--protected", flags.protected ?? echo ?? "/"),
    publicPath: flags.public === undefined ? undefined : folder("--public", flags.public),
    publicSuffix: suffixOf(flags["public-suffix"]),
    identityNames: [
      ...(flags.against === undefined ? SALLYPORT_NAMES : []),
      ...identity.map(fieldNameOf),
    ],
    publicKeys: flags.jwks === undefined ? [] : keysIn(flags.jwks),
  };
}

function urlOf(flag: string, given: string | undefined): URL {
  const url = given === undefined ? null : URL.parse(given);
  const bare = url !== null && url.pathname === "/" && `${url.search}${url.hash}` === "";
  if (!bare || !/^https?:$/.test(url.protocol) || `${url.username}${url.password}` !== "") {
    throw new UsageError(`${flag} needs an http or https URL without a path: https://host:8443`);
  }
  return url;
}

function tlsOf(
  url: URL,
  { ca, insecure = false }: { readonly ca?: string; readonly insecure?: boolean },
): ConnectionOptions | undefined {
  if (ca !== undefined && insecure) throw new UsageError("--ca and --insecure exclude each other");
  if (url.protocol === "http:") {
    if (ca === undefined && !insecure) return undefined;
    throw new UsageError("--ca and --insecure are for https");
  }
  // An IP address is not a valid server name (RFC 6066 §3).
  const named = isIP(url.hostname.replace(/^\[(.*)\]$/, "$1")) === 0;
  return {
    ...(named ? { servername: url.hostname } : {}),
    ...(ca === undefined ? {} : { ca: contentOf("--ca", ca) }),
    rejectUnauthorized: !insecure,
  };
}

function tokenOf(flags: { readonly token?: string; readonly "token-file"?: string }): string {
  const { token, "token-file": file } = flags;
  if ((token === undefined) === (file === undefined)) {
    throw new UsageError("either --token or --token-file is required");
  }
  const given = token ?? contentOf("--token-file", file ?? "").trim();
  if (given === "") throw new UsageError("the token is empty: did the login fail?");
  if (!/^[\x21-\x7e]+$/.test(given))
    throw new UsageError("the token contains blanks, control characters or non-ASCII characters");
  return given;
}

function listenOptionsOf(given: string): ListenOptions {
  if (given.startsWith("unix:")) return { path: given.slice("unix:".length) };
  const [, v6, name, digits] = /^(?:\[([\da-f:.]+)\]|([\w.-]+)):(\d+)$/i.exec(given) ?? [];
  const host = v6 ?? name;
  const port = Number(digits);
  if (host !== undefined && port <= 65_535) return { host, port };
  throw new UsageError("--backend needs HOST:PORT or unix:PATH");
}

/** Returns the suffix. It must begin with a character that the marks in our paths do not contain. */
function suffixOf(given: string | undefined): string | undefined {
  if (given === undefined || /^[.~_-][A-Za-z0-9._~-]+$/.test(given)) return given;
  throw new UsageError("--public-suffix needs the end of a file name, such as .css");
}

function fieldNameOf(given: string): string {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(given)) return given;
  throw new UsageError("--identity needs the name of a header");
}

/** Returns a path to which names can be appended. */
function folder(flag: string, path: string): string {
  if (!/^\/(?:[A-Za-z0-9._~-]+\/)*[A-Za-z0-9._~-]*$/.test(path))
    throw new UsageError(`${flag} needs a plain path`);
  return path.endsWith("/") ? path : `${path}/`;
}

/** Returns the keys that Node can import; a set may contain others. */
function keysIn(file: string): KeyObject[] {
  const found = jwksIn(contentOf("--jwks", file)).flatMap((key) => {
    try {
      return [createPublicKey({ key, format: "jwk" })];
    } catch {
      return [];
    }
  });
  if (found.length === 0) throw new UsageError("--jwks contains no public key");
  return found;
}

function jwksIn(content: string): webcrypto.JsonWebKey[] {
  try {
    const set: unknown = JSON.parse(content);
    if (typeof set === "object" && set !== null && "keys" in set && Array.isArray(set.keys)) {
      return set.keys;
    }
  } catch {
    // Reported below, without the content.
  }
  throw new UsageError("--jwks needs a file with a JSON Web Key Set");
}

function contentOf(flag: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const reason = systemCode(error) ?? "unreadable";
    throw new UsageError(`${flag} ${file}: ${reason}`);
  }
}

/** An address that never resolves (RFC 6761 §6.4). Hostile tokens claim that their key is there. */
const NOWHERE = "http://selftest.invalid";

export const selftest: Command = {
  help: `Usage: sallyport selftest --url URL --token TOKEN [options]
       sallyport selftest --against URL --token TOKEN [options]
       sallyport selftest --through URL --token TOKEN [options]

Attacks your own deployment with hand-written bytes: framing, paths, headers and tokens. Prints one line
for each check: PASS, FAIL or SKIP, its name, and what happened. Exit code 1 if a check fails, else 0.

      --url URL             https://host:8443, or http if TLS ends in front of Sallyport
      --against URL         the same for any other proxy, of which these options say what it protects, and how
      --through URL         the same for another proxy that asks Sallyport: how it reads messages is its own affair, so only
                            what could pass without permission is tried, and 500 to 503 count as no
      --token TOKEN         a valid token for the protected path
      --token-file FILE     reads the token from a file, so that no process list shows it
      --ca FILE             the CA certificate of the deployment, PEM
      --insecure            accepts any certificate
      --backend HOST:PORT   listens there, or on unix:PATH, as a backend that records what reaches it over HTTP/1.1 or
                            h2c; give it once for each target of the upstream behind the protected path
      --echo PATH           a protected path below which an echo backend answers
      --protected PATH      a path that requires the token (default: that of --echo, else /)
      --public PATH         a path that requires no token, for attacks through it
      --public-suffix END   a suffix of paths that require no token, such as .css of a route with a regular
                            expression; paths below the protected path that lack it require a token
      --identity NAME       a header that tells the backend who the caller is; give it once for each. With --url and
                            --through, those of Sallyport's presets are known
      --jwks FILE           the public keys of the deployment (JWKS), to forge tokens with them
      --timeout DURATION    for each response (default: 5s)
      --format text|json    default: text
  -h, --help                this text

Without --backend and --echo, selftest sees only responses, and skips the checks of what reaches the backend.
${ECHO_SHAPE}
Run it from an address that is not in server.trustedProxies, with rate limits that allow a few hundred
requests. It sends the token to the deployment, and never prints it.`,
  async run(args, terminal) {
    const options = readOptions(args);
    const results: Result[] = [];
    const report = (result: Result): void => {
      results.push(result);
      if (options.format === "text") terminal.out(line(result));
    };
    await withProgress(
      terminal,
      () => `waiting for the check after ${results.at(-1)?.name ?? "the start"}`,
      () => attack(options, terminal, report),
    );
    const count = (verdict: Verdict): number =>
      results.filter((result) => result.verdict === verdict).length;
    terminal.out(
      options.format === "json"
        ? `${JSON.stringify(results, undefined, 2)}\n`
        : `\n${count("PASS")} PASS, ${count("FAIL")} FAIL, ${count("SKIP")} SKIP\n`,
    );
    return count("FAIL") === 0 ? EXIT.done : EXIT.failed;
  },
};

async function attack(
  options: SelftestOptions,
  terminal: Terminal,
  report: (result: Result) => void,
): Promise<void> {
  const { peer, backends: places, echo } = options;
  if (places.length === 0) {
    const aim = { ...options, keyAddress: NOWHERE, ownBackend: false };
    return runAllChecks(peer, aim, echo ? ECHO_WITNESS : NO_WITNESS, report);
  }
  await using stack = new AsyncDisposableStack();
  const backends: RecordingBackend[] = [];
  for (const where of places) {
    const backend = stack.use(await startRecordingBackend(where));
    terminal.err(`the backend listens on ${backend.address}\n`);
    backends.push(backend);
  }
  const keyAddress = `http://${backends[0]?.address}${KEY_PATH}`;
  const aim = { ...options, keyAddress, ownBackend: true };
  await runAllChecks(peer, aim, recordingWitness(backends), report);
  for (const { address, used } of backends) {
    if (!used()) terminal.err(`the backend on ${address} got no request: is it a target?\n`);
  }
}

/** Replaces control characters: an echo may contain anything and must not control the terminal. */
function line({ verdict, name, seen }: Result): string {
  return `${verdict} ${name}  ${seen.replaceAll(/\p{Cc}/gu, "?")}\n`;
}
