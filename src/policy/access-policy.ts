import type { Route } from "../core/route/route.ts";
import { placeWords } from "../core/request/token-place.ts";
import { mayAdmitMore, networkWords } from "./create-network-rule.ts";
import { isWeakerRequirement, requirementWords } from "./requirements.ts";

/** What a route requires of callers. */
export type AccessPolicy = Pick<
  Route,
  "auth" | "mode" | "require" | "networks" | "tokenFrom" | "authorize"
>;

/** Reports whether a route refuses nobody: a public one, one that a caller without a token may use, or one in monitor mode. */
export function isOpen({ auth, mode }: AccessPolicy): boolean {
  return auth !== "required" || mode === "monitor";
}

/** Reports whether some caller passes `one` and is refused by `other`. Two routes can each be weaker than the other. */
export function isWeaker(one: AccessPolicy, other: AccessPolicy): boolean {
  if (other.mode !== "monitor" && mayAdmitMore(one.networks, other.networks)) return true;
  if (isOpen(other)) return false;
  // Nobody knows what another server allows.
  const asksMore = other.authorize !== undefined && one.authorize !== other.authorize;
  return isOpen(one) || asksMore || isWeakerRequirement(one.require ?? {}, other.require ?? {});
}

/** Returns `public`, `token`, `token, or nobody`, or `token in the cookie session and one group of sales,admin`. */
export function accessPolicyWords(policy: AccessPolicy): string {
  const { auth, require = {}, mode, networks, tokenFrom, authorize } = policy;
  const consent = authorize === undefined ? [] : [`the consent of ${authorize}`];
  const where = ["", ...(networks === undefined ? [] : networkWords(networks))].join(" ");
  if (auth === "none") return `public${where}`;
  const watched = mode === "monitor" ? ", only watched" : "";
  const places =
    tokenFrom === undefined ? "" : ` in ${tokenFrom.list.map(placeWords).join(" or ")}`;
  const token = auth === "optional" ? `token${places}, or nobody` : `token${places}`;
  return `${[token, ...requirementWords(require), ...consent].join(" and ")}${where}${watched}`;
}
