import type { Route } from "../core/route/route.ts";
import { placeWords } from "../core/request/token-place.ts";
import { mayAdmitMore, networkWords } from "./create-network-rule.ts";
import { isWeakerRequirement, requirementWords } from "./requirements.ts";

/** The parts of a route that decide who may use it. */
export type AccessPolicy = Pick<
  Route,
  "auth" | "mode" | "require" | "networks" | "tokenFrom" | "authorize"
>;

/** Whether a route admits callers without a token: it is public, its token is optional, or it is in monitor mode. */
export function isOpen({ auth, mode }: AccessPolicy): boolean {
  return auth !== "required" || mode === "monitor";
}

/** Whether some caller is admitted by `one` and refused by `other`. Each of two routes can be weaker than the other. */
export function isWeaker(one: AccessPolicy, other: AccessPolicy): boolean {
  if (other.mode !== "monitor" && mayAdmitMore(one.networks, other.networks)) return true;
  if (isOpen(other)) return false;
  // It is unknown which callers another server allows.
  const asksMore = other.authorize !== undefined && one.authorize !== other.authorize;
  return isOpen(one) || asksMore || isWeakerRequirement(one.require ?? {}, other.require ?? {});
}

/**
 * Describes a policy: `public`, `token`, `token (optional)`, or `token in the cookie session and one group of
 * sales,admin`.
 */
export function accessPolicyWords(policy: AccessPolicy): string {
  const { auth, require = {}, mode, networks, tokenFrom, authorize } = policy;
  const consent = authorize === undefined ? [] : [`the approval of ${authorize}`];
  const where = ["", ...(networks === undefined ? [] : networkWords(networks))].join(" ");
  if (auth === "none") return `public${where}`;
  const watched = mode === "monitor" ? ", in monitor mode" : "";
  const places =
    tokenFrom === undefined ? "" : ` in ${tokenFrom.list.map(placeWords).join(" or ")}`;
  const token = auth === "optional" ? `token${places} (optional)` : `token${places}`;
  return `${[token, ...requirementWords(require), ...consent].join(" and ")}${where}${watched}`;
}
