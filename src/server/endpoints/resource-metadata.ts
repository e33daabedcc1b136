import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Route } from "../../core/route/route.ts";
import type { Endpoint } from "../request/gate.ts";
import { originOf } from "../request/own-origin.ts";

/** A route, as far as it says what a token needs. */
export interface ProtectedPath {
  /** Empty for a regular expression. */
  readonly path: string;
  /** Whether it serves this host. */
  readonly serves: (host: string) => boolean;
  /** Whether it serves a client of this address; undefined for everybody. */
  readonly admits: ((client: string) => boolean) | undefined;
  readonly scopes: readonly string[];
}

/** What programs must know to get a token for this resource (RFC 9728). */
export interface ResourceMetadataOptions {
  /** The resource identifier; undefined for the origin that was asked for. */
  readonly resource: string | undefined;
  readonly name: string | undefined;
  readonly documentation: string | undefined;
  /** The issuers of the tokens that are accepted. */
  readonly authorizationServers: readonly string[];
  /** How a token may be sent (RFC 6750 §2): `header` and `query`. */
  readonly methods: readonly string[];
  /** What is said of tokens that are bound to keys of clients (RFC 9728 §2). */
  readonly bound: Readonly<Record<string, unknown>>;
  /** A resource may be more than an origin (RFC 9728 §3.1). */
  readonly paths: readonly ProtectedPath[];
}

export const METADATA_PATH = "/.well-known/oauth-protected-resource";
/** In seconds. It says only what the configuration says, and a reload must become known. */
const MAX_AGE_S = 300;

/** The protected resource metadata of this host, and of the paths that routes name. */
export class ResourceMetadata {
  readonly #options: ResourceMetadataOptions;
  /** Of the configured resource. */
  readonly #own:
    | { readonly origin: string; readonly path: string; readonly paths: readonly ProtectedPath[] }
    | undefined;
  /** Whether caches may give to all what one got. */
  readonly #isShared: boolean;
  /** By path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;

  constructor(options: ResourceMetadataOptions) {
    this.#options = options;
    const { resource, paths } = options;
    if (resource !== undefined) {
      const { origin, hostname, pathname } = new URL(resource);
      const served = paths.filter(({ serves }) => serves(hostname));
      // A proxy in front may ask by another name.
      const known = served.length === 0 ? paths : served;
      this.#own = { origin, path: withoutSlash(pathname), paths: known };
    }
    // A shared cache may ignore parts of `Host`, such as the port, and knows nothing of addresses.
    this.#isShared = this.#own?.paths.every(({ admits }) => admits === undefined) === true;
    const all = ["", this.#own?.path ?? "", ...paths.map(({ path }) => withoutSlash(path))];
    // Only a slash right behind the host is left out; some clients leave out every last one.
    this.endpoints = new Map(
      all.flatMap((path) =>
        [path, `${path}/`].map((asked) => [METADATA_PATH + asked, this.#endpoint(asked)] as const),
      ),
    );
  }

  /** Returns the address of the metadata, for the challenges of a request (RFC 9728 §5.1); undefined if it names no host of ours. */
  addressFor(request: GateRequest): string | undefined {
    if (this.#own !== undefined) return this.#own.origin + METADATA_PATH + this.#own.path;
    const serves = this.#options.paths.some((each) => each.serves(request.host));
    const origin = serves ? originOf(request) : undefined;
    return origin === undefined ? undefined : origin + METADATA_PATH;
  }

  /** Returns the scopes to ask for, for the challenge to a caller without a valid token; undefined if none is required. */
  scopesFor(route: Pick<Route, "require"> | undefined): string | undefined {
    const scopes = scopesIn(route?.require);
    return scopes.length === 0 ? undefined : [...new Set(scopes)].join(" ");
  }

  /** The client chooses the host, which counts only without a configured resource. */
  #servedPaths({ host, client }: GateRequest): readonly ProtectedPath[] {
    const atHost = this.#own?.paths ?? this.#options.paths.filter(({ serves }) => serves(host));
    return atHost.filter(({ admits }) => admits?.(client) !== false);
  }

  /** @param path of the resource, behind the well-known path. */
  #endpoint(path: string): Endpoint {
    return {
      name: "resource_metadata",
      // The answer to OPTIONS is for a preflight: programs in browsers send fields such as `MCP-Protocol-Version`.
      methods: ["GET", "HEAD", "OPTIONS"],
      auth: "none",
      answer: async ({ request, transfer }) => {
        const body = JSON.stringify(this.#documentFor(request, path));
        const scope = this.#isShared ? "public" : "private";
        const headers = [
          ...["Content-Type", "application/json", "Content-Length", `${Buffer.byteLength(body)}`],
          ...["Cache-Control", `${scope}, max-age=${MAX_AGE_S}`],
          ...["X-Content-Type-Options", "nosniff", "X-Request-Id", request.requestId],
        ];
        // It is public, and programs in browsers need it before they have a token. `cors` says nothing to a request without
        // `Origin` where it allows everybody: a cache may keep that answer for browsers.
        if ((transfer.cors?.own ?? []).length === 0) {
          headers.push("Access-Control-Allow-Origin", "*", "Access-Control-Allow-Headers", "*");
        }
        return { status: 200, body, headers };
      },
    };
  }

  /** @throws GateError `no_route` if nothing at this host has the path for this client. */
  #documentFor(request: GateRequest, path: string): object {
    const { resource, name, documentation, authorizationServers, methods, bound } = this.#options;
    const spelled = withoutSlash(path);
    const isOwn = spelled === "" || spelled === this.#own?.path;
    const served = this.#servedPaths(request).filter(
      (each) => isOwn || withoutSlash(each.path) === spelled,
    );
    const origin = this.#own?.origin ?? originOf(request);
    if (origin === undefined || served.length === 0) throw new GateError("no_route");
    const scopes = served.flatMap((each) => each.scopes);
    return {
      resource: isOwn && resource !== undefined ? resource : origin + (spelled === "" ? "" : path),
      ...(authorizationServers.length === 0 ? {} : { authorization_servers: authorizationServers }),
      ...(scopes.length === 0 ? {} : { scopes_supported: [...new Set(scopes)] }),
      bearer_methods_supported: methods,
      ...bound,
      ...(name === undefined ? {} : { resource_name: name }),
      ...(documentation === undefined ? {} : { resource_documentation: documentation }),
    };
  }
}

/** Returns the scopes that requirements name. */
export function scopesIn(require: Route["require"]): readonly string[] {
  return [...(require?.scopes?.all ?? []), ...(require?.scopes?.any ?? [])];
}

function withoutSlash(path: string): string {
  return path.replace(/\/$/, "");
}
