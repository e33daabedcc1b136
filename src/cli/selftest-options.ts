import { createPublicKey, type KeyObject, type webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP, type ListenOptions } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { listen } from "../config/schema/fields.ts";
import { durationFlag, parseFlags } from "./arguments.ts";
import { UsageError } from "./command.ts";
import { formatFrom } from "./terminal/format.ts";
import type { Peer } from "../selftest/raw-exchange.ts";
import { systemCode } from "../lib/text/error-code.ts";

/** The options of `selftest`. */
export interface SelftestOptions {
  readonly peer: Peer;
  /** Value of `Host`. */
  readonly host: string;
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
  readonly publicKeys: readonly KeyObject[];
}

const text = { type: "string" } as const;
const FLAGS = {
  url: text,
  token: text,
  "token-file": text,
  ca: text,
  insecure: { type: "boolean" },
  backend: { type: "string", multiple: true },
  echo: text,
  protected: text,
  public: text,
  "public-suffix": text,
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
  const { backend = [], echo } = flags;
  const format = formatFrom(flags.format, ["text", "json"]);
  if (backend.length > 0 && echo !== undefined) {
    throw new UsageError("--backend and --echo exclude each other");
  }
  const url = urlOf(flags.url);
  return {
    peer: {
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: Number(url.port || (url.protocol === "https:" ? 443 : 80)),
      tls: tlsOf(url, flags),
      timeoutMs: durationFlag("timeout", flags.timeout ?? "5s", 1),
    },
    host: url.host,
    token: tokenOf(flags),
    format,
    backends: backend.map(listenOptionsOf),
    echo: echo !== undefined,
    protectedPath: folder("--protected", flags.protected ?? echo ?? "/"),
    publicPath: flags.public === undefined ? undefined : folder("--public", flags.public),
    publicSuffix: suffixOf(flags["public-suffix"]),
    publicKeys: flags.jwks === undefined ? [] : keysIn(flags.jwks),
  };
}

function urlOf(given: string | undefined): URL {
  const url = given === undefined ? null : URL.parse(given);
  const bare = url !== null && url.pathname === "/" && `${url.search}${url.hash}` === "";
  if (!bare || !/^https?:$/.test(url.protocol) || `${url.username}${url.password}` !== "") {
    throw new UsageError("--url needs an http or https URL without a path: https://host:8443");
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
  const parsed = listen().safeParse(given);
  if (parsed.success) return parsed.data;
  throw new UsageError("--backend needs HOST:PORT or unix:PATH");
}

/** Returns the suffix. It must begin with a character that the marks in our paths do not contain. */
function suffixOf(given: string | undefined): string | undefined {
  if (given === undefined || /^[.~_-][A-Za-z0-9._~-]+$/.test(given)) return given;
  throw new UsageError("--public-suffix needs the end of a file name, such as .css");
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
