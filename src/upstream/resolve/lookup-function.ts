import { isIP, type LookupFunction } from "node:net";
import { lookupFor, type ResolveOptions } from "./lookup.ts";

/** Returns a `lookup` function that queries the DNS servers of an upstream; undefined if the system resolves its names. */
export function lookupFunction(options: ResolveOptions | undefined): LookupFunction | undefined {
  if (options?.servers === undefined) return undefined;
  const lookup = lookupFor(options);
  const respond = async (
    ...[name, { all }, callback]: Parameters<LookupFunction>
  ): Promise<void> => {
    const addresses = await lookup(name).then(({ addresses: each }) => each, nothing);
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first] = found;
    if (first === undefined) callback(notFound(name), "");
    else if (all === true) callback(null, found);
    else callback(null, first.address, first.family);
  };
  return (name, options, callback) => void respond(name, options, callback);
}

const nothing = (): string[] => [];

function notFound(name: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`no address of ${name}`), { code: "ENOTFOUND" });
}
