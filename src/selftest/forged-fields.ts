import { IDENTITY_PRESETS } from "../upstream/headers/identity-headers.ts";
import type { Target } from "./deployment.ts";
import { FORGED_ADDRESS, forgery } from "./expectations.ts";

/** Headers that Sallyport can be configured to set. */
export const PRESET_NAMES: readonly string[] = Object.values(IDENTITY_PRESETS).flatMap((preset) =>
  Object.values(preset),
);

/**
 * Returns spellings that some servers treat as the same name: CGI, WSGI and PHP do not distinguish `-`, `_` and `.`.
 */
function aliases(name: string): string[] {
  const spellings = [
    name,
    name.toLowerCase(),
    name.toUpperCase(),
    name.replaceAll("-", "_"),
    name.replace("-", "_"),
    name.replaceAll("-", "."),
  ];
  // The name occurs first and last, for servers that use the first or the last value.
  return [...new Set(spellings), name];
}

/** Returns forged identity headers, in every spelling. */
export function forgedIdentities({ identityNames }: Target, mark: string): string[] {
  return identityNames.flatMap(aliases).map((name) => `${name}: ${forgery(mark)}`);
}

/** Returns headers that forge the address of the client, and the host and scheme of its request. */
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

/** Returns headers whose names some servers take for other names. */
export function shadows(mark: string): string[] {
  const names = ["X_Forwarded_For", "X-Forwarded_Host", "X.Forwarded.Proto", "X_Real_IP"];
  return [...names, "X_Request_Id", "Content_Length", "Transfer_Encoding"].map(
    (name) => `${name}: ${forgery(mark)}`,
  );
}
