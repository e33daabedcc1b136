import type { Route } from "../core/request/route.ts";
import { mayAdmitMore, networkWords } from "./network-rule.ts";
import { isWeakerRequirement, requirementWords } from "./requirements.ts";

/** What a route requires of callers. */
export type AccessPolicy = Pick<Route, "auth" | "mode" | "require" | "networks">;

/** Reports whether a route refuses nobody: a public one, or one in monitor mode. */
export function isOpen({ auth, mode }: AccessPolicy): boolean {
  return auth === "none" || mode === "monitor";
}

/** Reports whether some caller passes `one` and is refused by `other`. Two routes can each be weaker than the other. */
export function isWeaker(one: AccessPolicy, other: AccessPolicy): boolean {
  if (other.mode !== "monitor" && mayAdmitMore(one.networks, other.networks)) return true;
  if (isOpen(other)) return false;
  return isOpen(one) || isWeakerRequirement(one.require ?? {}, other.require ?? {});
}

/** Returns `public`, `token`, or `token and one group of sales,admin`. */
export function accessPolicyWords({ auth, require = {}, mode, networks }: AccessPolicy): string {
  const where = ["", ...(networks === undefined ? [] : networkWords(networks))].join(" ");
  if (auth === "none") return `public${where}`;
  const watched = mode === "monitor" ? ", only watched" : "";
  return `${["token", ...requirementWords(require)].join(" and ")}${where}${watched}`;
}
