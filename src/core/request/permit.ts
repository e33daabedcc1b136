import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { Route } from "../route/route.ts";

/**
 * What is permitted: this request, on this route, for this caller. The caller may be undefined, as on a public route.
 */
export interface PermitParts {
  readonly request: GateRequest;
  readonly route: Route;
  readonly identity: Identity | undefined;
}

let mint: (parts: PermitParts) => Permit;

/**
 * Proof that a request may be forwarded. Only `mintPermit` creates one, and only `policy/authorize` may import that
 * (a lint rule).
 */
export class Permit implements PermitParts {
  readonly #granted = true;
  readonly request: GateRequest;
  readonly route: Route;
  readonly identity: Identity | undefined;
  static {
    mint = (parts) => new Permit(parts);
  }

  private constructor(parts: PermitParts) {
    this.request = parts.request;
    this.route = parts.route;
    this.identity = parts.identity;
  }

  /** Whether a value is a genuine permit. */
  static is(value: unknown): value is Permit {
    return typeof value === "object" && value !== null && #granted in value;
  }
}

/** Creates a permit for a request that policy allows. */
export function mintPermit(parts: PermitParts): Permit {
  return mint(parts);
}
