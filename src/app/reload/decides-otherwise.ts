import { isDeepStrictEqual } from "node:util";
import type { Configuration } from "../../config/schema/configuration-schema.ts";

/** Whether the new configuration may refuse a request that the old one permits. */
export function decidesOtherwise(before: Configuration, after: Configuration): boolean {
  const decisive = ({ routes, tokens, upstreams }: Configuration): unknown[] => [
    ...[routes, tokens],
    Object.keys(upstreams),
  ];
  return !isDeepStrictEqual(decisive(before), decisive(after));
}
