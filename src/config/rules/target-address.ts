/** Returns the address of a target: host and port, or the path of a socket. */
export function addressOf(
  target: string,
): { readonly host: string; readonly port: number } | string {
  if (target.startsWith("unix:")) return target.replace(/^unix:(?:\/\/)?/, "");
  const { hostname, port, protocol } = new URL(target);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port: port === "" ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port) };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/** Hosts in a target that mean this machine; connecting to an unspecified address also reaches it. */
const THIS_MACHINE = new Set(["localhost", "127.0.0.1", "::1", "0.0.0.0", "::"]);

/** Returns a comparable text for the address of each target; the protocol does not matter. */
export function placesOf(targets: readonly string[]): string[] {
  return targets.map((target) => {
    const address = addressOf(target);
    if (typeof address === "string") return address;
    const host = THIS_MACHINE.has(address.host) ? "localhost" : address.host;
    return `${host}:${address.port}`;
  });
}
