import { IDENTITY_PRESETS } from "../upstream/headers/identity-headers.ts";
import type { Target } from "./deployment.ts";
import { FORGED_ADDRESS, forgery } from "./expectations.ts";

/** Headers that Sallyport can be configured to set. */
export const PRESET_NAMES: readonly string[] = Object.values(IDENTITY_PRESETS).flatMap((preset) =>
  Object.values(preset),
);

/** Spellings that some readers take for one name: CGI, WSGI and PHP fold `_` and `.` into `-`. */
function aliases(name: string): string[] {
  const spellings = [
    name,
    name.toLowerCase(),
    name.toUpperCase(),
    name.replaceAll("-", "_"),
    name.replace("-", "_"),
    name.replaceAll("-", "."),
  ];
  // The last one occurs twice, for readers that take the first or the last.
  return [...new Set(spellings), name];
}

/** Returns who a client would like to be, in every spelling. */
export function forgedIdentities({ identityNames }: Target, mark: string): string[] {
  return identityNames.flatMap(aliases).map((name) => `${name}: ${forgery(mark)}`);
}

/** Where a client would like to come from. */
export function forwarded(mark: string): string[] {
  const host = `${forgery(mark)}.example`;
  return [
    `X-Forwarded-For: ${FORGED_ADDRESS}`,
    `x-forwarded-for: ${FORGED_ADDRESS}`,
    `X-Forwarded-Host: ${host}`,
    `X-Forwarded-Proto: ${forgery(mark)}`,
    `X-Forwarded-Port: ${forgery(mark)}`,
    `X-Real-IP: ${FORGED_ADDRESS}`,
    `Forwarded: for=${FORGED_ADDRESS};host=${host};proto=http`,
  ];
}

/** Names that some readers take for others. */
export function shadows(mark: string): string[] {
  const names = ["X_Forwarded_For", "X-Forwarded_Host", "X.Forwarded.Proto", "X_Real_IP"];
  return [...names, "X_Request_Id", "Content_Length", "Transfer_Encoding"].map(
    (name) => `${name}: ${forgery(mark)}`,
  );
}
