import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Endpoint } from "../request/gate.ts";
import { originOf } from "../request/own-origin.ts";

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
  /** The paths of routes, each with the scopes that it requires. A resource may be more than an origin (RFC 9728 §3.1). */
  readonly paths: ReadonlyMap<string, readonly string[]>;
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
/** In seconds. It says only what the configuration says, and a reload must become known. */
const MAX_AGE_S = 300;

/** The protected resource metadata of this host, and of the paths that routes name. */
export class ResourceMetadata {
  readonly #options: ResourceMetadataOptions;
  /** By path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;

  constructor(options: ResourceMetadataOptions) {
    this.#options = options;
    const { resource, paths } = options;
    // A path stands behind the well-known one, without its final slash.
    const own = resource === undefined ? "" : withoutSlash(new URL(resource).pathname);
    const all = new Set(["", own, ...[...paths.keys()].map(withoutSlash)]);
    this.endpoints = new Map([...all].map((path) => [WELL_KNOWN + path, this.#endpoint(path)]));
  }

  /** Returns the address of the metadata, for the challenges of a request (RFC 9728 §5.1); undefined if it names no host. */
  addressFor(request: GateRequest): string | undefined {
    const { resource } = this.#options;
    if (resource === undefined) {
      const origin = originOf(request);
      return origin === undefined ? undefined : origin + WELL_KNOWN;
    }
    const { origin, pathname } = new URL(resource);
    return origin + WELL_KNOWN + withoutSlash(pathname);
  }

  /** @param path of the resource, behind the well-known path. */
  #endpoint(path: string): Endpoint {
    return {
      name: "resource_metadata",
      methods: ["GET", "HEAD"],
      auth: "none",
      answer: async ({ request, transfer }) => {
        const body = JSON.stringify(this.#documentFor(request, path));
        const headers = [
          ...["Content-Type", "application/json", "Content-Length", `${Buffer.byteLength(body)}`],
          ...["Cache-Control", `public, max-age=${MAX_AGE_S}`, "X-Content-Type-Options", "nosniff"],
          ...["X-Request-Id", request.requestId],
          // It is public, and programs in browsers need it before they have a token.
          ...(transfer.cors === undefined ? ["Access-Control-Allow-Origin", "*"] : []),
        ];
        return { status: 200, body, headers, close: false };
      },
    };
  }

  #documentFor(request: GateRequest, path: string): object {
    const { resource, name, documentation, authorizationServers, methods, paths } = this.#options;
    const isOwn =
      path === "" || (resource !== undefined && path === withoutSlash(new URL(resource).pathname));
    const origin = resource === undefined ? originOf(request) : new URL(resource).origin;
    const scopes = isOwn
      ? [...paths.values()].flat()
      : (paths.get(path) ?? paths.get(`${path}/`) ?? []);
    return {
      resource: isOwn && resource !== undefined ? resource : `${origin ?? ""}${path}`,
      ...(authorizationServers.length === 0 ? {} : { authorization_servers: authorizationServers }),
      ...(scopes.length === 0 ? {} : { scopes_supported: [...new Set(scopes)] }),
      bearer_methods_supported: methods,
      ...(name === undefined ? {} : { resource_name: name }),
      ...(documentation === undefined ? {} : { resource_documentation: documentation }),
    };
  }
}

function withoutSlash(path: string): string {
  return path.replace(/\/$/, "");
}
