import { BlockList, isIP, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import type { PathProblem } from "../path-problem.ts";
import type { Configuration } from "../schema/configuration-schema.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";
import { addressOf } from "./target-address.ts";
import { NO_UPSTREAM, unknownName, type Written } from "./written.ts";

/** Rules about Sallyport's own listeners. */

/** Reports two listeners on one port: with SO_REUSEPORT, both would start and share the connections. */
export function listenerProblems({ whole }: Written): PathProblem[] {
  const { admin } = whole;
  const [host, port] = hostAndPort(mappingAt(whole, "server")["listen"] ?? "0.0.0.0:8443");
  const [adminHost, adminPort] =
    admin === "off" || admin === false
      ? ["", ""]
      : hostAndPort(mappingAt(admin)["listen"] ?? "0.0.0.0:9464");
  const everywhere = ["0.0.0.0", "[::]"];
  const shared = host === adminHost || everywhere.includes(host) || everywhere.includes(adminHost);
  if (port === "" || port === "0" || port !== adminPort || !shared) return [];
  return [{ path: ["admin", "listen"], message: "uses the port of server.listen: choose another" }];
}

function hostAndPort(listen: unknown): [string, string] {
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(textAt(listen) ?? "") ?? [];
  return [host, port];
}

export function proxyProblems({ whole }: Written): PathProblem[] {
  const { proxyProtocol, trustedProxies, trustedHeaders } = mappingAt(whole, "server");
  if (listAt(trustedProxies).length > 0) return [];
  const needed = (key: string, message: string): PathProblem => ({
    path: ["server", key],
    message,
  });
  return [
    ...(proxyProtocol === "accept"
      ? [
          needed(
            "proxyProtocol",
            "must not be accept without server.trustedProxies, which name the clients",
          ),
        ]
      : []),
    ...(listAt(trustedHeaders).length > 0
      ? [
          needed(
            "trustedHeaders",
            "has no effect without server.trustedProxies, which may send them",
          ),
        ]
      : []),
  ];
}

/** Paths that the admin listener answers itself. */
const OWN_PATHS = ["/metrics", "/livez", "/readyz", "/startupz"];
const OWN_PREFIXES = ["/-/", "/.well-known/"];

export function probeProblems({ whole, upstreams }: Written): PathProblem[] {
  const seen = new Set<string>();
  return listAt(whole, "admin", "probes").flatMap((probe, index) => {
    const at = ["admin", "probes", index];
    const path = textAt(probe, "path") ?? "";
    const own = OWN_PATHS.includes(path) || OWN_PREFIXES.some((prefix) => path.startsWith(prefix));
    const again = path !== "" && seen.has(path);
    seen.add(path);
    return [
      ...(own ? [{ path: [...at, "path"], message: "is Sallyport's own" }] : []),
      ...(again
        ? [{ path: [...at, "path"], message: "is the path of another probe already" }]
        : []),
      ...unknownName(textAt(probe, "upstream"), upstreams, [...at, "upstream"], NO_UPSTREAM),
    ];
  });
}

/**
 * Reports targets that are a listener of this process: each request would loop until no connections are left. Names
 * other than `localhost` are not resolved; loops through such names end with 508.
 */
export function ownListenerProblems({ server, admin, upstreams }: Configuration): PathProblem[] {
  const listeners = [
    { key: "server.listen", ...server.listen },
    ...(admin === "off" ? [] : [{ key: "admin.listen", ...admin.listen }]),
  ].map((listener) => ({ ...listener, addresses: addressesOf(listener.host) }));
  return Object.entries(upstreams).flatMap(([name, { targets }]) =>
    targets.flatMap((target, index): PathProblem[] => {
      const address = addressOf(target);
      if (typeof address === "string") return [];
      const own = listeners.find(
        ({ port, addresses }) => port === address.port && isAmong(addresses, address.host),
      );
      if (own === undefined) return [];
      const message = `is Sallyport itself, which listens there by ${own.key}: name the backend`;
      return [{ path: ["upstreams", name, "targets", index], message }];
    }),
  );
}

/** Returns the addresses that reach a listener; for `0.0.0.0` and `::`, those of every interface. */
function addressesOf(host: string): BlockList {
  const addresses = new BlockList();
  const add = (address: string): void =>
    addresses.addAddress(address, isIPv6(address) ? "ipv6" : "ipv4");
  if (host === "0.0.0.0" || host === "::") {
    addresses.addSubnet("127.0.0.0", 8, "ipv4");
    for (const address of ["::1", ...UNSPECIFIED]) add(address);
    for (const { address } of Object.values(networkInterfaces()).flatMap((list) => list ?? [])) {
      add(address);
    }
  } else {
    for (const address of meanings(host)) add(address);
    // Connecting to an unspecified address reaches the loopback.
    if (isAmong(addresses, "localhost")) for (const address of UNSPECIFIED) add(address);
  }
  return addresses;
}

const UNSPECIFIED = ["0.0.0.0", "::"];

function isAmong(addresses: BlockList, host: string): boolean {
  return meanings(host).some((address) =>
    addresses.check(address, isIPv6(address) ? "ipv6" : "ipv4"),
  );
}

/** Returns the addresses of a host without a DNS look-up. */
function meanings(host: string): string[] {
  if (isIP(host) !== 0) return [host];
  return host.toLowerCase() === "localhost" ? ["127.0.0.1", "::1"] : [];
}
